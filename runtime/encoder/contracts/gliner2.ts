import { setImmediate } from 'node:timers/promises';
import { append } from '../../../lib/append.ts';
import { at } from '../../../lib/at.ts';
import type { ExtractTask, FieldProbability } from '../../../lib/backend.ts';
import type { Json } from '../../../lib/contract/answer-shape.ts';
import { pointerStep } from '../../../lib/json/leaves.ts';
import { joinMembers } from '../../../lib/json/members.ts';
import { indexOfHighest, normalised } from '../../../lib/tasks/logprobs.ts';
import { decidesOnly } from '../../contracts/contract.ts';
import type { ContractOf } from '../../contracts/encoder-contracts.ts';
import { dot } from '../../contracts/pointer-head.ts';
import { textOrJson } from '../../contracts/python-json.ts';
import type { Question } from '../../contracts/question.ts';
import {
  type Adapter,
  type EncoderRow,
  type Planned,
  type PlanOptions,
  type RowOutput,
  type RunHead,
  tooLong,
} from '../adapter.ts';
import type { EncoderTokenizer } from '../encoder-tokenizer.ts';
import { type ExtractField, fieldsOfShape, type StructureField } from './span-shape.ts';

/*
 * GLiNER2: a schema (classes, entities, structures) and the words of a text as one row, `( [P] prompt ( [L] label …) )
 * [SEP_TEXT] words`. Classes are read at the markers of the labels. Spans are scored by the states of their first and
 * last word against a query for each label.
 */

/** Describes a part of a schema. */
export type SchemaPart =
  | { kind: 'structure'; name: string; fields: readonly StructureField[] }
  | { kind: 'entities'; labels: readonly SchemaLabel[] }
  | { kind: 'classification'; prompt: string; labels: readonly SchemaLabel[] };

export interface SchemaLabel {
  label: string;
  description?: string | null;
}

interface Word {
  ids: readonly number[];
  start: number;
  end: number;
}

/** Holds a schema and a text as a row. */
export interface SchemaRow {
  row: EncoderRow & { markers: readonly number[] };
  /** Positions of the prompt and labels of each part of the schema. */
  parts: readonly (readonly number[])[];
  /** Position of the first token of each word: those of the choices of structures, then those of the text. */
  first: readonly number[];
  /** Words that list the choices of a structure's fields, in front of the text. */
  prefix: readonly string[];
  words: readonly Word[];
}

/** Represents a stretch of the text, with indices of UTF-16 code units. */
interface Span {
  start: number;
  end: number;
  probability: number;
}

const MARKS = { structure: '[C]', entities: '[E]', classification: '[L]' } as const;
/** Least probability of a span that is there (the library's default). */
const THRESHOLD = 0.5;
/** Words of a window over a long text, and those that two windows share (the library's `extract_long`). */
const WINDOW = { words: 384, shared: 64 };
/** Spans that are scored before other work has a turn: some milliseconds. */
const SPANS_AT_ONCE = 1024;
const SUBWORD = '[\\p{L}\\p{N}_\\p{M}\\u200c\\u200d]';
const MAIL = { name: '[a-z0-9._%+-]+', domain: '@[a-z0-9.-]+\\.[a-z]{2,}' };
/** Matches words as the library splits them: addresses, mail addresses, handles, words, and single characters. */
const word = (mail: string): RegExp =>
  new RegExp(`(?:https?://[^\\s]+|www\\.[^\\s]+)|${mail}@[a-z0-9_]+|${SUBWORD}+(?:[-_]${SUBWORD}+)*|\\S`, 'giu');
const [WORD, WORD_OR_MAIL] = [word(''), word(`${MAIL.name}${MAIL.domain}|`)];
const MAIL_NAME = new RegExp(MAIL.name, 'iuy');
const MAIL_DOMAIN = new RegExp(MAIL.domain, 'iuy');
const INK = /\S/gu;

/**
 * Finds the words of a text, as `WORD_OR_MAIL` alone would. That one reads all that could be the name of a mail address
 * again at each sign in it, which takes seconds for some texts, so it is only used where a domain follows.
 */
export function* findWords(text: string): Generator<{ 0: string; index: number }, void> {
  /** End of what could be the name of a mail address, and whether a domain is there. */
  let name = { end: 0, isMail: false };
  for (let from = 0; ; ) {
    const { index } = matchAt(INK, text, from) ?? { index: -1 };
    if (index < 0) return;
    if (index >= name.end) {
      const end = index + (matchAt(MAIL_NAME, text, index)?.[0].length ?? 0);
      name = { end, isMail: end > index && matchAt(MAIL_DOMAIN, text, end) !== null };
    }
    const found = matchAt(name.isMail && index < name.end ? WORD_OR_MAIL : WORD, text, index);
    if (!found) return;
    yield found;
    from = found.index + found[0].length;
  }
}

function matchAt(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

/**
 * Splits a text into words, each of which is encoded alone. The library ends every text with punctuation, so a point
 * may be added. Yields after each word, so that other work may run.
 */
export function* wordsOf(text: string, tokenizer: EncoderTokenizer): Generator<void, Word[]> {
  const ended = text === '' ? '.' : /[.!?]$/.test(text) ? text : `${text}.`;
  const known = new Map<string, readonly number[]>();
  const words: Word[] = [];
  for (const { 0: written, index } of findWords(ended)) {
    const word = written.toLowerCase();
    const ids = known.get(word) ?? (yield* tokenizer.encodeInParts(word));
    known.set(word, ids);
    words.push({ ids, start: index, end: index + written.length });
    yield;
  }
  return words;
}

/** Writes a schema and words as a row. Yields after each text, so that other work may run. */
export function* schemaRow(
  schema: readonly SchemaPart[],
  words: readonly Word[],
  tokenizer: EncoderTokenizer,
): Generator<void, SchemaRow> {
  const ids: number[] = [];
  function* write(text: string): Generator<void, void> {
    append(ids, yield* tokenizer.encodeInParts(text));
  }
  const parts: number[][] = [];
  for (const [i, part] of schema.entries()) {
    const positions: number[] = [];
    const mark = (token: string): void => {
      positions.push(ids.length);
      ids.push(tokenizer.id(token));
    };
    yield* write('(');
    mark('[P]');
    for (const [k, text] of promptOf(part).entries()) {
      if (k > 0) ids.push(tokenizer.id('[DESCRIPTION]'));
      yield* write(text);
    }
    yield* write('(');
    for (const label of labelsOf(part)) {
      mark(MARKS[part.kind]);
      yield* write(label);
    }
    yield* write(')');
    yield* write(')');
    ids.push(tokenizer.id(i < schema.length - 1 ? '[SEP_STRUCT]' : '[SEP_TEXT]'));
    parts.push(positions);
  }
  const prefix = schema.flatMap(choiceWords);
  const first: number[] = [];
  for (const word of prefix) {
    first.push(ids.length);
    yield* write(word);
  }
  const shared = words.reduce((sum, word) => sum + word.ids.length, 0);
  for (const word of words) {
    first.push(ids.length);
    append(ids, word.ids);
  }
  return { row: { ids, shared, markers: parts.flatMap(([, ...labels]) => labels) }, parts, first, prefix, words };
}

function labelsOf(part: SchemaPart): string[] {
  return part.kind === 'structure' ? part.fields.map(({ name }) => name) : part.labels.map(({ label }) => label);
}

/** Returns the texts of a prompt, between which `[DESCRIPTION]` is. */
function promptOf(part: SchemaPart): string[] {
  if (part.kind === 'structure') return [part.name];
  const described = part.labels.flatMap(({ label, description }) => (description ? [` ${label}: ${description}`] : []));
  const texts = [part.kind === 'entities' ? 'entities' : part.prompt, ...described];
  return texts.map((text, i) => (i < described.length ? `${text} ` : text));
}

/** Returns the words that list the choices of a structure's fields: `( order: currency ( EUR | USD ) )`. */
function choiceWords(part: SchemaPart): string[] {
  if (part.kind !== 'structure') return [];
  const fields = part.fields.flatMap(({ name, choices }) =>
    choices ? [name, '(', ...choices.flatMap((choice, i) => (i > 0 ? ['|', choice] : [choice])), ')', ','] : [],
  );
  return fields.length > 0 ? ['(', `${part.name}:`, ...fields.slice(0, -1), ')'] : [];
}

/** Reads what a model computed for one row. */
export class SchemaReader {
  readonly #schema: SchemaRow;
  readonly #hidden: Float32Array;
  readonly #width: number;
  readonly #maxWidth: number;
  readonly #run: RunHead;
  readonly #scored = new WeakMap<Float32Array, readonly number[]>();
  #spans: Promise<{ reps: Float32Array; starts: number[]; ends: number[] }> | undefined;

  constructor(schema: SchemaRow, output: RowOutput, run: RunHead, maxWidth: number) {
    this.#schema = schema;
    this.#hidden = Object.values(output)[0] ?? new Float32Array();
    this.#width = this.#hidden.length / schema.row.ids.length;
    this.#run = run;
    this.#maxWidth = maxWidth;
  }

  /** Returns the logit of each label of a classification. */
  async classes(part: number): Promise<number[]> {
    const [, ...labels] = at(this.#schema.parts, part);
    return [...(await this.#run('classifier', { hidden_state: this.#states(labels) }))];
  }

  /** Returns the number of instances of entities (0 or more) or a structure that the model counts. */
  async count(part: number): Promise<{ count: number; probability: number }> {
    const [prompt = 0] = at(this.#schema.parts, part);
    const logits = [...(await this.#run('count_pred', { hidden_state: this.#states([prompt]) }))];
    const count = indexOfHighest(logits);
    return { count, probability: Math.exp(at(normalised(logits), count)) };
  }

  /** Returns the queries of a part's labels, by which `spans` and `choices` score: one for each instance and label. */
  async queries(part: number, all: boolean): Promise<(instance: number, label: number) => Float32Array> {
    const [, ...labels] = at(this.#schema.parts, part);
    const role = all ? 'count_embed_all' : 'count_embed';
    const queries = await this.#run(role, { label_embeddings: this.#states(labels) });
    return (instance, label) => {
      const start = (instance * labels.length + label) * this.#width;
      return queries.subarray(start, start + this.#width);
    };
  }

  /**
   * Returns the spans of the text whose probability is at least `threshold`, the most probable first, none
   * overlapping.
   */
  async spans(query: Float32Array, threshold: number): Promise<Span[]> {
    const { starts, ends } = await this.#all();
    const { prefix, words } = this.#schema;
    const scores = await this.#scores(query);
    const found = scores.flatMap((probability, i): Span[] => {
      const [from, to] = [at(starts, i) - prefix.length, at(ends, i) - prefix.length];
      if (from < 0 || probability < threshold) return [];
      return [{ start: at(words, from).start, end: at(words, to).end, probability }];
    });
    return withoutOverlaps(found);
  }

  /** Returns the probability of each choice of a structure's field. */
  async choices(query: Float32Array, choices: readonly string[]): Promise<number[]> {
    const { starts, ends } = await this.#all();
    const scores = await this.#scores(query);
    return choices.map((choice) => {
      const word = this.#schema.prefix.findIndex((one) => one.toLowerCase() === choice.toLowerCase());
      const place = starts.findIndex((start, i) => start === word && ends[i] === word);
      return scores[place] ?? 0;
    });
  }

  /** Returns the probability of each span for a query, and gives way to other work meanwhile. */
  async #scores(query: Float32Array): Promise<readonly number[]> {
    const known = this.#scored.get(query);
    if (known) return known;
    const { reps, starts } = await this.#all();
    const { length } = query;
    const scores: number[] = [];
    for (const i of starts.keys()) {
      scores.push(sigmoid(dot(reps.subarray(i * length, (i + 1) * length), query)));
      if ((i + 1) % SPANS_AT_ONCE === 0) await setImmediate();
    }
    this.#scored.set(query, scores);
    return scores;
  }

  /** Computes the states of all spans of up to `maxWidth` words, once for a row. */
  #all(): Promise<{ reps: Float32Array; starts: number[]; ends: number[] }> {
    this.#spans ??= this.#computeSpans();
    return this.#spans;
  }

  async #computeSpans(): Promise<{ reps: Float32Array; starts: number[]; ends: number[] }> {
    const { first, row } = this.#schema;
    const [starts, ends]: [number[], number[]] = [[], []];
    for (const start of first.keys()) {
      for (let end = start; end < Math.min(start + this.#maxWidth, first.length); end++) {
        starts.push(start);
        ends.push(end);
      }
    }
    const tokens = (words: readonly number[]) => ({
      data: words.map((word) => at(first, word)),
      dims: [1, words.length],
    });
    const reps = await this.#run('span_rep', {
      hidden_states: { data: this.#hidden, dims: [1, row.ids.length, this.#width] },
      span_start_idx: tokens(starts),
      span_end_idx: tokens(ends),
    });
    return { reps, starts, ends };
  }

  #states(positions: readonly number[]): { data: Float32Array; dims: number[] } {
    const data = new Float32Array(positions.length * this.#width);
    for (const [i, position] of positions.entries()) {
      data.set(this.#hidden.subarray(position * this.#width, (position + 1) * this.#width), i * this.#width);
    }
    return { data, dims: [positions.length, this.#width] };
  }
}

/** Keeps the most probable spans, and of the others those that overlap none that is kept. */
function withoutOverlaps(spans: readonly Span[]): Span[] {
  const kept: Span[] = [];
  for (const span of spans.toSorted((a, b) => b.probability - a.probability)) {
    if (!kept.some((other) => span.start < other.end && other.start < span.end)) kept.push(span);
  }
  return kept;
}

function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

/**
 * Creates the adapter of a GLiNER2 model.
 *
 * @param roles names of the model's graphs: `model` alone classifies, `encoder` and its heads also extract spans
 */
export function gliner2Adapter(
  contract: ContractOf<'gliner2'>,
  tokenizer: EncoderTokenizer,
  roles: ReadonlySet<string>,
): Adapter {
  const { maxTokens } = contract;
  const spans = roles.has('span_rep');
  const adapter: Adapter = {
    capabilities: { ...decidesOnly(maxTokens), extract: spans ? 'spans' : false },
    *decide(questions, state, _, planned) {
      const words = yield* wordsOf(textOrJson(state), tokenizer);
      for (const question of questions) {
        const schema = yield* schemaRow([classificationOf(question)], words, tokenizer);
        checkLength(schema, maxTokens, false);
        planned({
          rows: [schema.row],
          async read(outputs, run) {
            const [output = {}] = outputs;
            const logits = roles.has('classifier')
              ? await new SchemaReader(schema, output, run, contract.maxWidth).classes(0)
              : [...(Object.values(output)[0] ?? [])].slice(0, question.options.length);
            return { logprobs: normalised(logits) };
          },
        });
      }
    },
  };
  if (!spans) return adapter;
  return {
    ...adapter,
    extract: (task, text, options) => planExtraction(task, text, { contract, tokenizer, roles, ...options }),
  };
}

function classificationOf({ kind, instructions, options }: Question): SchemaPart {
  return {
    kind: 'classification',
    prompt: textOrJson(instructions) || 'classify',
    labels: options.map(({ name, description }) => ({
      label: name,
      description: description === null || kind === 'predicate' ? null : textOrJson(description),
    })),
  };
}

function checkLength({ row }: SchemaRow, maxTokens: number, windows: boolean): void {
  if (row.ids.length > maxTokens) throw tooLong(row.ids.length, maxTokens, windows);
}

interface ExtractContext extends PlanOptions {
  contract: ContractOf<'gliner2'>;
  tokenizer: EncoderTokenizer;
  roles: ReadonlySet<string>;
}

type TextField = Pick<StructureField, 'name' | 'kind' | 'nullable' | 'needed'>;

/** Holds a field's answer: JSON text, and the probability of each value in it. */
interface FieldAnswer {
  json: string;
  fields: FieldProbability[];
}

/** Plans an extraction: one row for all texts, and one for each class and structure. */
function* planExtraction(task: ExtractTask, text: string, context: ExtractContext): Generator<void, Planned> {
  const { contract, tokenizer, roles } = context;
  const fields = fieldsOfShape(task.shape, { structures: roles.has('count_pred') && roles.has('count_embed_all') });
  const windows = textWindows(yield* wordsOf(text, tokenizer), context);
  const texts = fields.filter(isText);
  const entities: SchemaPart = {
    kind: 'entities',
    labels: texts.map(({ name, description }) => ({ label: name, ...(description ? { description } : {}) })),
  };
  const planned: { rows: SchemaRow[]; field: ExtractField | null }[] = [];
  function* add(part: SchemaPart, field: ExtractField | null): Generator<void, void> {
    const rows: SchemaRow[] = [];
    for (const words of windows) rows.push(yield* schemaRow([part], words, tokenizer));
    for (const row of rows) checkLength(row, contract.maxTokens, !context.windows);
    planned.push({ rows, field });
  }
  if (texts.length > 0) yield* add(entities, null);
  for (const field of fields) {
    const part = partOf(field);
    if (part) yield* add(part, field);
  }
  return {
    rows: planned.flatMap(({ rows }) => rows.map(({ row }) => row)),
    async read(outputs, run) {
      let next = 0;
      const readers = planned.map(({ rows, field }) => ({
        field,
        readers: rows.map((row) => new SchemaReader(row, outputs[next++] ?? {}, run, contract.maxWidth)),
      }));
      const source = new Source(text, roles);
      const answers = new Map<string, FieldAnswer | null>();
      for (const { field, readers: own } of readers) {
        if (field) answers.set(field.name, await source.answer(field, own));
        else for (const [label, one] of texts.entries()) answers.set(one.name, await source.spans(one, label, own));
      }
      const members = fields.flatMap(({ name }) => {
        const answer = answers.get(name);
        return answer ? [[name, answer] as const] : [];
      });
      return {
        extracted: {
          json: joinMembers(members.map(([name, { json }]) => [name, json])),
          fields: members.flatMap(([, answer]) => answer.fields),
        },
      };
    },
  };
}

function isText(field: ExtractField): field is ExtractField & TextField {
  return field.kind === 'text' || field.kind === 'texts';
}

function partOf(field: ExtractField): SchemaPart | null {
  switch (field.kind) {
    case 'text':
    case 'texts':
      return null;
    case 'boolean':
      return {
        kind: 'classification',
        prompt: field.description ?? field.name,
        labels: [{ label: 'yes' }, { label: 'no' }],
      };
    case 'class':
    case 'classes':
      return {
        kind: 'classification',
        prompt: field.name,
        labels: field.values.map((value) => ({ label: labelOf(value) })),
      };
    case 'structures':
      return { kind: 'structure', name: field.name, fields: field.fields };
  }
}

const labelOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Splits the words of a text into windows, if it is long and windows are allowed. */
function textWindows(words: readonly Word[], { windows }: PlanOptions): (readonly Word[])[] {
  if (!windows || words.length <= WINDOW.words) return [words];
  const parts: (readonly Word[])[] = [];
  for (let start = 0; ; start += WINDOW.words - WINDOW.shared) {
    parts.push(words.slice(start, start + WINDOW.words));
    if (start + WINDOW.words >= words.length) return parts;
  }
}

/** Turns spans of a text into answers. */
class Source {
  readonly #text: string;
  readonly #roles: ReadonlySet<string>;

  constructor(text: string, roles: ReadonlySet<string>) {
    this.#text = text;
    this.#roles = roles;
  }

  /** Answers a field with the spans of one label of the entities. */
  async spans(field: TextField, label: number, readers: readonly SchemaReader[]): Promise<FieldAnswer | null> {
    const found: Span[] = [];
    let none = 1;
    for (const reader of readers) {
      const counted = this.#roles.has('count_pred') ? await reader.count(0) : null;
      const query = (await reader.queries(0, this.#roles.has('count_embed_all')))(0, label);
      const all = await reader.spans(query, 0);
      const best = all[0]?.probability ?? 0;
      none = Math.min(none, counted?.count === 0 ? counted.probability : 1 - best);
      if (counted?.count === 0 && !field.needed) continue;
      found.push(
        ...(field.needed
          ? all.filter(({ probability }, i) => i === 0 || probability >= THRESHOLD)
          : await reader.spans(query, THRESHOLD)),
      );
    }
    return this.#written(field, withoutOverlaps(this.#inside(found)), none, `/${pointerStep(field.name)}`);
  }

  /** Answers a field that has rows of its own. */
  async answer(field: ExtractField, readers: readonly SchemaReader[]): Promise<FieldAnswer | null> {
    const path = `/${pointerStep(field.name)}`;
    switch (field.kind) {
      case 'structures':
        return this.#structures(field, readers, path);
      case 'boolean':
      case 'class': {
        // Of several windows, the most certain one answers.
        let best = { probability: -1, index: 0 };
        for (const reader of readers) {
          const logprobs = normalised(await reader.classes(0));
          const index = indexOfHighest(logprobs);
          const probability = Math.exp(at(logprobs, index));
          if (probability > best.probability) best = { probability, index };
        }
        const value = field.kind === 'boolean' ? best.index === 0 : at(field.values, best.index);
        return { json: JSON.stringify(value), fields: [{ path, probability: best.probability }] };
      }
      case 'classes': {
        const probabilities = field.values.map(() => 0);
        for (const reader of readers) {
          for (const [i, logit] of (await reader.classes(0)).entries()) {
            probabilities[i] = Math.max(at(probabilities, i), sigmoid(logit));
          }
        }
        const chosen = field.values.flatMap((value, i) => (at(probabilities, i) >= THRESHOLD ? [{ value, i }] : []));
        return {
          json: JSON.stringify(chosen.map(({ value }) => value)),
          fields: chosen.map(({ i }, place) => ({ path: `${path}/${place}`, probability: at(probabilities, i) })),
        };
      }
      default:
        return null;
    }
  }

  async #structures(
    { fields }: Extract<ExtractField, { kind: 'structures' }>,
    readers: readonly SchemaReader[],
    path: string,
  ): Promise<FieldAnswer> {
    const items: FieldAnswer[] = [];
    for (const reader of readers) {
      const { count } = await reader.count(0);
      const queries = await reader.queries(0, true);
      for (let instance = 0; instance < count; instance++) {
        const item = await this.#structure(
          fields,
          reader,
          (label) => queries(instance, label),
          `${path}/${items.length}`,
        );
        // Windows share words, and may find the same structure.
        if (item && !items.some(({ json }) => json === item.json)) items.push(item);
      }
    }
    return { json: `[${items.map(({ json }) => json).join(',')}]`, fields: items.flatMap((item) => item.fields) };
  }

  /** Answers one instance of a structure; null if nothing is found for any of its fields. */
  async #structure(
    fields: readonly StructureField[],
    reader: SchemaReader,
    query: (label: number) => Float32Array,
    path: string,
  ): Promise<FieldAnswer | null> {
    let found = false;
    const members: [string, FieldAnswer][] = [];
    for (const [label, field] of fields.entries()) {
      const at_ = `${path}/${pointerStep(field.name)}`;
      const answer = field.choices
        ? this.#chosen(field, field.choices, await reader.choices(query(label), field.choices), at_)
        : await this.#texts(field, reader, query(label), at_);
      found ||= answer.found;
      if (answer.written) members.push([field.name, answer.written]);
    }
    if (!found) return null;
    return {
      json: joinMembers(members.map(([name, { json }]) => [name, json])),
      fields: members.flatMap(([, answer]) => answer.fields),
    };
  }

  async #texts(
    field: StructureField,
    reader: SchemaReader,
    query: Float32Array,
    path: string,
  ): Promise<{ found: boolean; written: FieldAnswer | null }> {
    const all = this.#inside(await reader.spans(query, 0));
    const probable = this.#inside(await reader.spans(query, THRESHOLD));
    const spans = field.needed && probable.length === 0 ? all.slice(0, 1) : probable;
    return { found: probable.length > 0, written: this.#written(field, spans, 1 - (all[0]?.probability ?? 0), path) };
  }

  #chosen(
    field: StructureField,
    choices: readonly string[],
    probabilities: readonly number[],
    path: string,
  ): { found: boolean; written: FieldAnswer | null } {
    const probable = choices.flatMap((choice, i) => (at(probabilities, i) >= THRESHOLD ? [{ choice, i }] : []));
    const found = probable.length > 0;
    if (field.kind === 'texts') {
      const json = JSON.stringify(probable.map(({ choice }) => choice));
      const fields = probable.map(({ i }, place) => ({ path: `${path}/${place}`, probability: at(probabilities, i) }));
      return { found, written: { json, fields } };
    }
    const best = indexOfHighest(probabilities);
    if (found || field.needed) {
      const fields = [{ path, probability: at(probabilities, best) }];
      return { found, written: { json: JSON.stringify(choices[best]), fields } };
    }
    return { found, written: nothing(field, 1 - at(probabilities, best), path) };
  }

  /** Cuts off the point that was added to the text, and leaves out a span that is only that point. */
  #inside(spans: readonly Span[]): Span[] {
    const { length } = this.#text;
    return spans.filter(({ start }) => start < length).map((span) => ({ ...span, end: Math.min(span.end, length) }));
  }

  #written(
    field: Pick<StructureField, 'kind' | 'nullable' | 'needed'>,
    spans: readonly Span[],
    none: number,
    path: string,
  ): FieldAnswer | null {
    const value = ({ start, end }: Span): string => JSON.stringify(this.#text.slice(start, end));
    const proof = ({ start, end, probability }: Span, where: string): FieldProbability => ({
      path: where,
      probability,
      evidence: { start, end },
    });
    if (field.kind === 'texts') {
      const inOrder = spans.toSorted((a, b) => a.start - b.start);
      return {
        json: `[${inOrder.map(value).join(',')}]`,
        fields: inOrder.map((span, i) => proof(span, `${path}/${i}`)),
      };
    }
    const [best] = spans;
    return best ? { json: value(best), fields: [proof(best, path)] } : nothing(field, none, path);
  }
}

/** Returns the answer to a field for which nothing was found: null, or no answer if the field may be absent. */
function nothing(
  { nullable, needed }: Pick<StructureField, 'nullable' | 'needed'>,
  probability: number,
  path: string,
): FieldAnswer | null {
  if (nullable) return { json: 'null', fields: [{ path, probability }] };
  return needed ? { json: '""', fields: [{ path, probability }] } : null;
}

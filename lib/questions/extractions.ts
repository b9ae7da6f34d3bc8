import { at } from '../at.ts';
import type { FieldProbability, Task, TaskAnswer, TaskBatch } from '../backend.ts';
import type { AnswerShape, JsonSchema } from '../contract/answer-shape.ts';
import { AssayError } from '../errors.ts';
import { pointerStep } from '../json/leaves.ts';
import { joinMembers, membersText, splitMembers } from '../json/members.ts';
import { entriesAsWritten } from '../json/written-numbers.ts';
import { pathTo } from '../param-path.ts';
import {
  type ExtractionField,
  type ExtractionsRequest,
  type MemberField,
  MOST_ITEMS,
} from '../schema/extractions-request.ts';
import { optionTask, YES_OR_NO } from './decisions.ts';
import { estimateOf, gridOf } from './estimate.ts';
import { evidenceOf, indexIn, type SourceText, type SpanUnit } from './evidence.ts';
import { extractedMembers } from './extracted.ts';
import { assetParts, mediaParts } from './media.ts';
import { notStatedBeside, type QuestionAnswers, windowMembers } from './question-answers.ts';
import { type QuestionSettings, textOf } from './settings.ts';
import { answersOfSystemOne, batchOfSystemOne, LOADED_MODEL } from './systemone.ts';

/* Converts requests of the extraction format to a `TaskBatch`, and a `BatchAnswer` to its response. */

/** Default limit of output tokens for all fields of a request together. */
const OUTPUT_TOKENS = 4096;
/** Names that mean the loaded model: those that clients of this format and of System One send. */
const CLAIRIC: ReadonlySet<string> = new Set([
  ...['clairic', 'clef'].flatMap((name) => [name, `cloudflare/${name}`, `@cf/cloudflare/${name}`]),
  ...LOADED_MODEL,
]);
/** Begin of the names of the tasks of fields. */
const FIELD = 'f';
/** Default of `null_threshold`. */
const NULL_THRESHOLD = 0.5;

/** Describes a field that the server answers. */
type Field = Exclude<ExtractionField, { type: 'forecast' }>;
type FieldOf<T extends Field['type']> = Extract<Field, { type: T }>;

/**
 * Converts a validated request to a batch: the questions, then the fields. Throws the errors of `batchOfSystemOne` for
 * its questions.
 *
 * @param text JSON text of the request, as for `batchOfSystemOne`
 */
export function batchOfExtractions(request: ExtractionsRequest, text?: string): TaskBatch {
  const { calibrated = true, max_output_tokens: maxOutputTokens = OUTPUT_TOKENS } = request;
  const asked = request.questions && batchOfSystemOne({ ...request, questions: request.questions }, text);
  const { model } = request;
  return {
    ...(model === undefined || model === null || CLAIRIC.has(model) ? {} : { model }),
    input: asked?.input ?? { context: textOf(request.state) },
    media: [...mediaParts('image', request.images ?? [], (i) => `images[${i}]`), ...assetParts(request.assets)],
    tasks: [
      ...(asked?.tasks ?? []),
      ...askedFields(request).map(([name, field], i) => ({ ...taskOf(name, field, request), name: `${FIELD}${i}` })),
    ],
    temperature: 0,
    maxOutputTokens,
    probabilities: { calibrated },
  };
}

/** Returns the fields that need an answer of the model. Throws `unsupported_schema` for a forecast. */
function askedFields(request: ExtractionsRequest): [string, Field][] {
  return entriesAsWritten(request.fields ?? {}).flatMap(([name, field]): [string, Field][] => {
    if (field.type !== 'forecast') return isWithoutSource(field, request) ? [] : [[name, field]];
    const param = pathTo(pathTo('fields', name), 'type');
    throw new AssayError(
      'unsupported_schema',
      `${param} forecast is not supported; ask for an estimate of each step.`,
      {
        param,
      },
    );
  });
}

/** Tells whether a field has nothing to be quoted from: the state is empty, and there are no media. */
function isWithoutSource(field: Field, request: ExtractionsRequest): boolean {
  return quotes(field, request) && textOf(request.state).trim() === '';
}

/** Tells whether the texts of a field are quoted from the state. Words in an image cannot be. */
function quotes(field: Field, { images, assets }: ExtractionsRequest): boolean {
  if ((images ?? []).length > 0 || Object.keys(assets ?? {}).length > 0) return false;
  if (field.type === 'object') return !Object.values(field.fields).some((member) => 'free' in member && member.free);
  return (field.type === 'text' || (field.type === 'list' && field.items === 'text')) && !field.free;
}

function taskOf(name: string, field: Field, request: ExtractionsRequest): Task {
  const asked = askedText(name, field, request);
  switch (field.type) {
    case 'boolean':
      return optionTask('choice', asked, [...YES_OR_NO, notStatedBeside([])]);
    case 'enum':
      return optionTask('choice', asked, [...field.options, notStatedBeside(field.options)]);
    case 'estimate':
      return optionTask('score', asked, gridOf(field).options);
    default: {
      // The text of a plain field is asked for by its key, as the starter model was trained.
      const shape: AnswerShape =
        field.type === 'text' ? { kind: 'keys', keys: [name] } : shapeOf(name, nullable(schemaOf(field)));
      const present = shapeOf(name, schemaOf(field));
      return { type: 'extract', name: '', instruction: asked, shape, present, verbatim: quotes(field, request) };
    }
  }
}

/** Returns what a field asks for, in a line for the model. */
function askedText(name: string, field: Field | MemberField, { reference_date: today }: ExtractionsRequest): string {
  const asked = textOf(field.instructions ?? '').trim() || name.replaceAll(/[_.-]+/g, ' ').trim() || name;
  const notes = [noteOf(field), ...(today ? [`today is ${today}`] : [])].filter((note) => note !== '');
  return notes.length === 0 ? asked : `${asked} (${notes.join('; ')})`;
}

function noteOf(field: Field | MemberField): string {
  switch (field.type) {
    case 'duration':
      return `a length of time in ${field.unit ?? 'seconds'}`;
    case 'list':
      return ['all, in order', ...(field.unit ? [`in ${field.unit}`] : [])].join('; ');
    case 'text':
    case 'number':
    case 'estimate':
      return field.unit ? `in ${field.unit}` : '';
    default:
      return '';
  }
}

function shapeOf(name: string, schema: JsonSchema): AnswerShape {
  return {
    kind: 'schema',
    schema: { type: 'object', properties: { [name]: schema }, required: [name], additionalProperties: false },
  };
}

/** Returns the schema of a value of a field; for an object, that of members which may each be null. */
function schemaOf(field: Exclude<Field | MemberField, { type: 'boolean' | 'enum' | 'estimate' }>): JsonSchema {
  switch (field.type) {
    case 'list':
      return { type: 'array', items: itemSchema(field.items, field), maxItems: MOST_ITEMS };
    case 'object': {
      const members = Object.entries(field.fields);
      return {
        type: 'object',
        properties: Object.fromEntries(members.map(([name, member]) => [name, memberSchema(name, member)])),
        required: members.map(([name]) => name),
        additionalProperties: false,
      };
    }
    default:
      return itemSchema(field.type, 'integer' in field || 'decimals' in field ? field : {});
  }
}

interface Digits {
  integer?: boolean;
  decimals?: number;
}

function itemSchema(type: 'text' | 'number' | 'date' | 'time' | 'datetime' | 'duration', digits: Digits): JsonSchema {
  switch (type) {
    case 'text':
      return { type: 'string', minLength: 1 };
    case 'number':
    case 'duration':
      return {
        type: digits.integer ? 'integer' : 'number',
        ...(type === 'duration' ? { minimum: 0 } : {}),
        ...(digits.decimals === undefined || digits.integer ? {} : { multipleOf: Number(`1e-${digits.decimals}`) }),
      };
    case 'date':
      return { type: 'string', format: 'date' };
    case 'time':
      return { type: 'string', format: 'local-time' };
    default:
      return { type: 'string', format: 'local-date-time' };
  }
}

function memberSchema(name: string, member: MemberField): JsonSchema {
  const description = askedText(name, member, {} as ExtractionsRequest);
  const described = { description };
  switch (member.type) {
    case 'boolean':
      return { type: ['boolean', 'null'], ...described };
    case 'enum':
      return { enum: [...member.options, null], ...described };
    case 'list':
      return { ...schemaOf(member), ...described };
    default:
      return { ...nullable(schemaOf(member)), ...described };
  }
}

/** Returns the schema that also allows null; lists and objects express an absent value themselves. */
function nullable(schema: JsonSchema): JsonSchema {
  return schema.type === 'array' || schema.type === 'object'
    ? schema
    : { ...schema, type: [schema.type ?? '', 'null'] };
}

/**
 * Returns the JSON text of an ExtractionsResponse.
 *
 * @param answer the answers to the questions and fields of `batchOfExtractions(request)`
 */
export function extractionsBody(
  request: ExtractionsRequest,
  answer: QuestionAnswers,
  requestId: string,
  server: QuestionSettings,
): string {
  const unit = request.options?.span_unit;
  const settings = { ...server, ...(unit ? { spanUnit: unit } : {}) };
  const state = textOf(request.state);
  const spans = new StateSpans(state, spanUnitOf(request));
  const given = answer.answers.slice(Object.keys(request.questions ?? {}).length)[Symbol.iterator]();
  const asked = new Map(askedFields(request));
  const fields = entriesAsWritten(request.fields ?? {}).map(([name, field]) => {
    const own = asked.get(name);
    return [name, own ? fieldAnswer(name, own, given.next().value!, spans, request) : withoutSource(field)] as const;
  });
  const { promptTokens, completionTokens, stateTokens = promptTokens, mediaTokens = 0 } = answer.usage;
  const usage = {
    state_tokens: stateTokens,
    image_tokens: mediaTokens,
    schema_tokens: promptTokens - stateTokens - mediaTokens,
    input_tokens: promptTokens,
    output_tokens: completionTokens,
    passes: answer.answers[0]?.window?.count ?? 1,
  };
  const returned = request.options?.return_state_text ?? typeof request.state !== 'string';
  return joinMembers([
    ['object', '"extraction"'],
    ['id', JSON.stringify(requestId)],
    ['model', JSON.stringify(answer.model)],
    [
      'answers',
      joinMembers([
        ...(request.questions
          ? answersOfSystemOne({ state: request.state, questions: request.questions }, answer.answers, settings)
          : []),
        ...fields,
      ]),
    ],
    ['truncated', 'false'],
    ...(returned ? ([['state_text', JSON.stringify(state)]] as const) : []),
    ['usage', JSON.stringify(usage)],
  ]);
}

/** Returns the unit of the spans of an answer. */
export function spanUnitOf({ options }: ExtractionsRequest): SpanUnit {
  return options?.span_unit ?? 'code_point';
}

/** Tells whether a task is of a `boolean` or `enum` field, whose last option is that the state does not tell. */
export function hasAbsentOption(task: Task): boolean {
  return task.type === 'decide' && task.kind === 'choice' && task.name.startsWith(FIELD);
}

/** Returns the JSON text of the answer to a field for which there is no source. */
function withoutSource({ type }: ExtractionField): string {
  if (type === 'list') return JSON.stringify({ type, value: [], spans: [], confidences: [], confidence: 1 });
  if (type === 'object') return JSON.stringify({ type, value: null, fields: [], complete: true, confidence: 1 });
  return JSON.stringify({ type, value: null, p_null: 1, confidence: 0 });
}

/** Returns the JSON text of one field's answer. */
function fieldAnswer(
  name: string,
  field: Field,
  answer: TaskAnswer,
  spans: StateSpans,
  { options }: ExtractionsRequest,
): string {
  const { type } = field;
  const more = windowMembers(answer);
  switch (type) {
    case 'boolean': {
      const [yes = 0, no = 0, absent = 0] = probabilitiesOf(answer);
      const stated = yes + no;
      const p_true = stated > 0 ? yes / stated : 0.5;
      const guess = p_true >= 0.5;
      return JSON.stringify({ ...chosen(field, guess, absent, Math.max(p_true, 1 - p_true)), p_true, ...more });
    }
    case 'enum': {
      const all = probabilitiesOf(answer);
      const absent = all.pop() ?? 0;
      const stated = all.reduce((sum, p) => sum + p, 0);
      const shares = all.map((p) => (stated > 0 ? p / stated : 1 / all.length));
      const best = shares.indexOf(Math.max(...shares));
      const answered = chosen(field, field.options[best], absent, at(shares, best));
      const probabilities = joinMembers(field.options.map((option, i) => [option, String(at(shares, i))]));
      return `${JSON.stringify(answered).slice(0, -1)},"probabilities":${probabilities}${membersText(more)}}`;
    }
    case 'estimate': {
      const grid = gridOf(field);
      return JSON.stringify({
        type,
        ...estimateOf(grid, answer.optionLogprobs ?? [], options?.include_quantiles ?? false),
        ...more,
      });
    }
    case 'list':
      return JSON.stringify({ ...listAnswer(field, answer, spans), ...more });
    case 'object':
      return objectAnswer(name, answer, spans);
    default:
      return JSON.stringify({ ...valueAnswer(field, answer, spans), ...more });
  }
}

function probabilitiesOf({ optionLogprobs = [] }: TaskAnswer): number[] {
  return optionLogprobs.map(Math.exp);
}

/** Returns the members that all answers with a null decision share. */
function chosen(field: { type: string; null_threshold?: number }, guess: unknown, absent: number, confidence: number) {
  const value = absent > (field.null_threshold ?? NULL_THRESHOLD) ? null : guess;
  return { type: field.type, value, guess, p_null: within01(absent), confidence: within01(confidence) };
}

function within01(value: number): number {
  return Math.min(1, Math.max(0, value));
}

type ValueField = Exclude<Field, { type: 'list' | 'object' | 'boolean' | 'enum' | 'estimate' }>;

function valueAnswer(field: ValueField, answer: TaskAnswer, spans: StateSpans): object {
  const guess = Object.values(JSON.parse(answer.json) as object)[0] as string | number | null;
  const confidence = answer.fields?.[0]?.probability;
  const absent = answer.absent ?? 0;
  // An answer that the limit of output tokens has cut is no guess.
  if (confidence === undefined || guess === null) {
    return { type: field.type, value: null, p_null: within01(absent), confidence: 0, x_cut: true };
  }
  const span =
    spans.ofEvidence(answer.fields?.[0]) ??
    (typeof guess === 'number' ? spans.ofNumber(guess) : field.type === 'text' ? spans.ofText(guess) : null);
  return {
    ...chosen(field, guess, absent, confidence),
    ...(field.type === 'duration' ? { unit: field.unit ?? 'seconds' } : {}),
    ...(span ? { span } : {}),
  };
}

function listAnswer(field: FieldOf<'list'>, answer: TaskAnswer, spans: StateSpans): object {
  const confidences = (answer.fields ?? []).map(({ probability }) => probability);
  const items = Object.values(JSON.parse(answer.json) as object)[0] as (string | number)[];
  // Items that were cut have no probability.
  const value = items.slice(0, confidences.length);
  const cut = value.length < items.length;
  const found = value.map(
    (item, i) =>
      spans.ofEvidence(answer.fields?.[i]) ?? (typeof item === 'number' ? spans.ofNumber(item) : spans.ofText(item)),
  );
  return {
    type: 'list',
    value,
    ...(field.items === 'text' && found.every((span) => span !== null) ? { spans: found } : {}),
    confidences,
    confidence: within01(cut ? 0 : (answer.certainty ?? 0)),
    ...(cut ? { x_cut: true } : {}),
  };
}

function objectAnswer(name: string, answer: TaskAnswer, spans: StateSpans): string {
  const json = splitMembers(answer.json).get(name) ?? 'null';
  const above = `/${pointerStep(name)}`.length;
  const fields = (answer.fields ?? []).map((field) => ({ ...field, path: field.path.slice(above) }));
  const members = extractedMembers({ ...answer, json, fields }, [spans.source], { name: 'value', unit: spans.unit });
  return `{"type":"object",${members},"confidence":${within01(answer.certainty ?? 0)}${membersText(windowMembers(answer))}}`;
}

/** Locates a part of the state by its first index and the index after its end. */
type Span = [start: number, end: number];

/** Finds values in the text of a state, in code points or in UTF-16 code units. */
export class StateSpans {
  readonly source: SourceText;
  readonly unit: SpanUnit;
  #numbers: { start: number; end: number; values: readonly number[] }[] | undefined;

  constructor(text: string, unit: SpanUnit) {
    this.source = { source: '/state', text };
    this.unit = unit;
  }

  /** Returns the span of a text, a whole word if there is one; null if the state does not contain it. */
  ofText(value: string): Span | null {
    const found = evidenceOf(value, '', [this.source], { unit: this.unit });
    return found && [found.start, found.end];
  }

  /** Returns the span of the first number with this value, however it is written; null if there is none. */
  ofNumber(value: number): Span | null {
    this.#numbers ??= Array.from(this.source.text.matchAll(/[-−]?\d(?:[\d.,'\u00a0\u202f ]*\d)?/g), (match) => ({
      start: match.index,
      end: match.index + match[0].length,
      values: readings(match[0]),
    }));
    const found = this.#numbers.find(({ values }) => values.includes(value));
    // A hyphen before a number may be part of a name or range, so a positive number begins after it.
    const unsigned = this.#numbers.find(({ values }) => values.includes(-value));
    if (found) return this.#span(found.start, found.end);
    return unsigned && value > 0 ? this.#span(unsigned.start + 1, unsigned.end) : null;
  }

  /** Returns the span that a value is known to have; null if it is not known. */
  ofEvidence(field: Pick<FieldProbability, 'evidence'> | undefined): Span | null {
    return field?.evidence ? this.#span(field.evidence.start, field.evidence.end) : null;
  }

  #span(start: number, end: number): Span {
    return [indexIn(this.source, start, this.unit), indexIn(this.source, end, this.unit)];
  }
}

/** Returns the values that a number in a text may have: `1.234,50` and `1,234.50` are both 1234.5. */
function readings(written: string): number[] {
  const plain = written.replace('−', '-').replaceAll(/['\u00a0\u202f ]/g, '');
  const english = Number(plain.replaceAll(',', ''));
  const continental = Number(plain.replaceAll('.', '').replace(',', '.'));
  return [english, continental].filter((value) => !Number.isNaN(value));
}

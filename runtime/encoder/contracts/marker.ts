import { append } from '../../../lib/append.ts';
import { at } from '../../../lib/at.ts';
import { AssayError } from '../../../lib/errors.ts';
import { normalised } from '../../../lib/tasks/logprobs.ts';
import { decidesOnly } from '../../contracts/contract.ts';
import { type ContractOf, rowTokens } from '../../contracts/encoder-contracts.ts';
import { isPyObject, type PyValue, textOrJson } from '../../contracts/python-json.ts';
import type { Option, Question } from '../../contracts/question.ts';
import { type Adapter, type EncoderRow, type Planned, type PlanOptions, tooLong } from '../adapter.ts';
import type { EncoderTokenizer } from '../encoder-tokenizer.ts';

/*
 * Models that read a question as one row, `[CLS] question [SEP] ([MASK] option)+ [SEP] state [SEP]`, and return a logit
 * for each marker: Laya, Julia, jevhome, OpenDecider and DecisionTune. They differ in the texts and limits below.
 */

type Name = 'laya' | 'julia' | 'jevhome' | 'opendecider' | 'decision-tune';
type MarkerContract = ContractOf<Name>;

interface Layout {
  maxTokens: number;
  special: { cls: number; sep: number; mask: number };
  head(question: Question): string;
  options(question: Question): string[];
  /** Text in front of each option's text, encoded with it. */
  optionPrefix: string;
  state(state: PyValue): string;
  /** Index of the option that stands for "yes" in the row of a predicate. */
  yes: 0 | 1;
  /** Replaces texts of control tokens in the parts of a row. */
  clean(text: string): string;
  /** Longest question and options together, and longest option; absent if they are never shortened. */
  limits?: { head: number; option: number };
  temperature(question: Question): number;
  /** True if the graph returns a logit for each token instead of each marker. */
  everyToken?: boolean;
  /** Tokens of a long text that are read at once, in windows that overlap by half; absent if it is not read so. */
  window?: number;
}

const KINDS = { choice: 0, score: 1, predicate: 2 } as const;
/** Names of the kinds in the authors' texts. */
const TYPES = { choice: 'choice', score: 'score', predicate: 'noul' } as const;
const unchanged = (text: string): string => text;
/** Options that most authors offer for a predicate: whether a description of it is false or true. */
const falseTrue = ({ options: [yes, no] }: Question, no_: string, yes_: string): string[] => [
  `false: ${textOrJson(no?.description ?? no_)}`,
  `true: ${textOrJson(yes?.description ?? yes_)}`,
];
const described = ({ name, description }: Option): string =>
  description === null ? name : `${name}: ${textOrJson(description)}`;

/** Returns the name of the range that a number of options is in, by which temperatures are fitted. */
function bucket({ kind, options: { length } }: Question): string {
  const range = length <= 2 ? '2' : length <= 5 ? '3-5' : length <= 10 ? '6-10' : '11+';
  return `${TYPES[kind]}:${range}`;
}

function layoutOf(contract: MarkerContract, { special }: EncoderTokenizer): Layout {
  const mask = special.mask?.text ?? '';
  const withoutMask = (text: string): string => (mask === '' ? text : text.replaceAll(mask, ' '));
  const common = {
    special: { cls: special.cls, sep: special.sep, mask: special.mask?.id ?? special.sep },
    head: (question: Question) => `${TYPES[question.kind]} question: ${textOrJson(question.instructions)}`,
    optionPrefix: ' ',
    state: (state: PyValue) => textOrJson(state),
    yes: 1 as const,
    clean: unchanged,
    temperature: () => 1,
  };
  switch (contract.name) {
    case 'laya':
      return {
        ...common,
        maxTokens: contract.maxTokens,
        limits: { head: contract.headTokens, option: 48 },
        clean: withoutMask,
        window: Math.max(64, contract.maxTokens - contract.headTokens - 8),
        options(question) {
          if (question.kind === 'choice') return question.options.map(described);
          if (question.kind === 'score') return question.options.map((option, i) => `level ${i}: ${described(option)}`);
          return falseTrue(question, 'no, the statement does not hold', 'yes, the statement holds');
        },
        temperature(question) {
          const stated = contract.temperatureByOptions[bucket(question)] ?? contract.temperature[KINDS[question.kind]];
          return Math.min(5, Math.max(0.5, stated));
        },
      };
    case 'julia':
      return {
        ...common,
        maxTokens: rowTokens(contract),
        limits: { head: 256, option: 48 },
        options: (question) =>
          question.kind === 'predicate' ? falseTrue(question, 'false', 'true') : question.options.map(described),
        state: (state) => textOrJson(state, { sorted: true }),
      };
    case 'jevhome':
      return {
        ...common,
        maxTokens: rowTokens(contract),
        limits: { head: 320, option: 48 },
        clean: withoutMask,
        yes: 0,
        options(question) {
          if (question.kind === 'score') return question.options.map((option, i) => `${i}: ${described(option)}`);
          if (question.kind === 'choice')
            return question.options.map(({ name, description }) => `${name}: ${textOrJson(description ?? name)}`);
          return falseTrue(question, 'The proposition is false.', 'The proposition is true.').reverse();
        },
        temperature: (question) => contract.temperatureByOptions[bucket(question)] ?? 1,
      };
    case 'opendecider':
      return {
        ...common,
        maxTokens: contract.maxTokens,
        special: contract.special,
        everyToken: true,
        head: ({ instructions }) => `question: ${textOrJson(instructions)}`,
        state: (state) => `input: ${textOrJson(state, { sorted: true })}`,
        options({ kind, options }) {
          const texts = options.map((option) =>
            textOrJson(option.description ?? '') === option.name ? option.name : described(option),
          );
          if (kind !== 'predicate') return texts;
          const [yes, no] = options;
          return [
            described({ name: 'false', description: no?.description ?? null }),
            described({ name: 'true', description: yes?.description ?? null }),
          ];
        },
      };
    case 'decision-tune':
      return {
        ...common,
        maxTokens: contract.maxTokens,
        head: ({ instructions }) => textOrJson(instructions, { compact: true }),
        optionPrefix: '',
        yes: 0,
        clean: (text) =>
          ['[MASK]', '[CLS]', '[SEP]', '[PAD]', '[UNK]'].reduce((rest, one) => rest.replaceAll(one, ' '), text),
        state: pairsText,
        options({ kind, options }) {
          if (kind === 'predicate') return ['yes', 'no'];
          if (kind === 'score') return options.map(described);
          return options.map(({ name, description }) => {
            const text = textOrJson(description ?? '', { compact: true });
            return text === '' ? name.replaceAll('_', ' ') : text;
          });
        },
      };
  }
}

/** Writes an object as `name: value | name: value`, and any other value as compact JSON. */
function pairsText(state: PyValue): string {
  if (state === null) return '';
  if (!isPyObject(state)) return textOrJson(state, { compact: true });
  return [...state].map(([name, value]) => `${name}: ${textOrJson(value, { compact: true })}`).join(' | ');
}

/** Creates the adapter of a model with markers. */
export function markerAdapter(contract: MarkerContract, tokenizer: EncoderTokenizer): Adapter {
  const layout = layoutOf(contract, tokenizer);
  const encode: Encode = (text) => tokenizer.encodeInParts(layout.clean(text));
  return {
    capabilities: decidesOnly(layout.maxTokens, Math.floor((layout.maxTokens - 16) / 4)),
    readsMessages: contract.name === 'laya',
    *decide(questions, state, options, planned) {
      const stateIds = yield* encode(layout.state(state));
      for (const question of questions) planned(yield* planQuestion(layout, encode, question, stateIds, options));
    },
  };
}

type Encode = EncoderTokenizer['encodeInParts'];

function* planQuestion(
  layout: Layout,
  encode: Encode,
  question: Question,
  stateIds: readonly number[],
  { calibrated, windows }: PlanOptions,
): Generator<void, Planned> {
  const { sep } = layout.special;
  const { ids: head, markers } = yield* headOf(layout, encode, question);
  const room = layout.maxTokens - head.length - 1;
  const canSplit = layout.window !== undefined && room > 1;
  if (stateIds.length > room && !(windows && canSplit))
    throw tooLong(head.length + stateIds.length + 1, layout.maxTokens, canSplit);
  const parts = stateIds.length <= room ? [stateIds] : windowsOf(stateIds, Math.min(layout.window ?? room, room));
  const rows = parts.map(
    (part): EncoderRow => ({
      ids: [...head, ...part, sep],
      shared: parts.length === 1 ? part.length : 0,
      markers,
      kind: KINDS[question.kind],
    }),
  );
  return {
    rows,
    read(outputs) {
      const answers = outputs.map(({ logits = new Float32Array() }) => {
        const read = layout.everyToken
          ? markers.map((marker) => at(logits, marker))
          : [...logits.subarray(0, markers.length)];
        const temperature = calibrated ? layout.temperature(question) : 1;
        const logprobs = normalised(read.map((logit) => logit / temperature));
        return question.kind === 'predicate' && layout.yes === 1 ? logprobs.reverse() : logprobs;
      });
      // Laya's rule for windows: a statement holds if it holds in any; elsewhere the most certain window answers.
      const certainty = (logprobs: readonly number[]) =>
        question.kind === 'predicate' ? at(logprobs, 0) : Math.max(...logprobs);
      return { logprobs: answers.reduce((best, one) => (certainty(one) > certainty(best) ? one : best)) };
    },
  };
}

/** Cuts the tokens of a state into windows that overlap by half. */
function windowsOf(ids: readonly number[], size: number): (readonly number[])[] {
  const step = Math.floor(size / 2);
  const windows: (readonly number[])[] = [];
  for (let start = 0; ; start += step) {
    windows.push(ids.slice(start, start + size));
    if (start + size >= ids.length) return windows;
  }
}

/** Encodes the part of a row in front of the state, with its options shortened as the author's code does. */
function* headOf(
  { special, head, options, optionPrefix, limits }: Layout,
  encode: Encode,
  question: Question,
): Generator<void, { ids: number[]; markers: number[] }> {
  let asked = yield* encode(head(question));
  let texts: number[][] = [];
  for (const text of options(question)) texts.push([special.mask, ...(yield* encode(optionPrefix + text))]);
  if (limits) {
    const longest = Math.max(...texts.map(({ length }) => length)) - 1;
    if (longest > limits.option) throw optionTooLong(longest, limits.option);
    const left = () => limits.head - texts.reduce((sum, { length }) => sum + length, 0);
    if (left() < LEAST_HEAD) {
      const each = Math.max(4, Math.trunc((limits.head - LEAST_HEAD) / texts.length));
      texts = texts.map((ids) => ids.slice(0, each));
      checkDistinct(texts);
    } else if (asked.length > left()) throw questionTooLong(asked.length, left());
    const kept = Math.max(8, left());
    if (asked.length > 2 * kept) throw questionTooLong(asked.length, kept);
    asked = asked.slice(0, kept);
  }
  const ids = [special.cls, ...asked, special.sep];
  const markers = texts.map((text) => {
    const marker = ids.length;
    append(ids, text);
    return marker;
  });
  ids.push(special.sep);
  return { ids, markers };
}

/** Tokens that the options leave for the question, or else are shortened to leave. */
const LEAST_HEAD = 16;

/*
 * Many options are shortened together, as the models were trained on them. Beyond that, the authors' code cuts texts
 * without a word: a long option, a long question, or options that become the same. These are refused here.
 */

function optionTooLong(tokens: number, most: number): AssayError {
  return new AssayError(
    'input_too_long',
    `An option has ${tokens} tokens, and this model reads at most ${most} of one. Shorten its description.`,
  );
}

function questionTooLong(tokens: number, most: number): AssayError {
  return new AssayError(
    'input_too_long',
    `A question has ${tokens} tokens, and its options leave room for ${most} in this model. Shorten it, or send fewer options.`,
  );
}

function checkDistinct(options: readonly (readonly number[])[]): void {
  if (new Set(options.map((ids) => ids.join())).size === options.length) return;
  throw new AssayError(
    'input_too_long',
    'This model shortens so many options until two are the same. Send fewer options, or begin each with what sets it apart.',
  );
}

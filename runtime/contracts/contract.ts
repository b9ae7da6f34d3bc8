import { at } from '../../lib/at.ts';
import type { QuestionKind } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { ModelCapabilities, ModelContract } from '../../lib/schema/model-list.ts';
import type { ConfidenceFormula } from '../../lib/schema/question-fields.ts';
import type { WritingContract } from './assay.ts';
import type { PyValue } from './python-json.ts';
import type { Question, QuestionLimits } from './question.ts';

/** Encodes text for a decision model, with the tokenizer and chat template of its repository. */
export interface ContractText {
  /**
   * Returns the ids of a text that is encoded alone, without special tokens around it. Control tokens in it are
   * recognised.
   */
  encode(text: string): readonly number[];
  /**
   * Returns a function that does work which encodes texts, and yields between parts of it, so that other work may run.
   * In a slice, only so many characters are encoded; further texts are empty, and once they are encoded the work is
   * done again. It must therefore encode the same texts each time. All work of one function encodes each text once.
   */
  inParts(): <T>(work: () => T) => Generator<void, T>;
  /** Returns the text of a conversation up to the model's answer, with thinking off. */
  chat(messages: readonly { role: 'system' | 'user'; content: string }[]): string;
  /** Returns the id of a token with exactly this text. Throws `engine_failed` if there is none. */
  token(text: string): number;
  /** Id of the token that the tokenizer puts in front of every text; null if there is none. */
  readonly begin: number | null;
  /**
   * Returns the ids of the joined parts of a text, and for each part the index of the last token that lies within it;
   * -1 if none does.
   */
  encodeParts(parts: readonly string[]): { ids: readonly number[]; last: readonly number[] };
}

/** Describes one token sequence that the model reads once. */
export interface Row {
  ids: readonly number[];
  /** Number of tokens at the beginning that depend on nothing but the state. */
  shared: number;
  read: Read;
}

/**
 * Describes what is read of a row. `labels`: the outputs at the last token, by their places in the contract's table of
 * labels. Otherwise the outputs at the ends of the options and at the token that decides, which the head combines; all
 * positions are relative to the row. `joint`: the logits of the options of all fields, which a second graph computes
 * from the states of all tokens.
 */
export type Read =
  | { labels: readonly number[] }
  | { options: readonly number[]; decide: number }
  | { joint: readonly Field[] };

/** Describes a question of a row that asks several: the tokens of its words and of each option, from and up to. */
export interface Field {
  kind: QuestionKind;
  question: Span;
  options: readonly Span[];
}
export type Span = readonly [from: number, to: number];

/**
 * Reads the answer to one question: yields rows, receives the options' logits for each of them, and returns the natural
 * logarithms of the options' probabilities, which sum to 1. Most contracts need one round of rows.
 */
export type Reading = Generator<readonly Row[], readonly number[], readonly (readonly number[])[]>;

/** Asks all questions of one request about one state. */
export interface Asking {
  ask(question: Question): Reading;
}

/**
 * Describes a linear layer that takes the place of a language model's head. Its input are the hidden states after the
 * last norm.
 */
export interface LastLayer {
  /** Number of outputs. */
  width: number;
  /** Normalisation before the layer: mean 0 and variance 1, without gain and bias, which the weights contain. */
  normalised: boolean;
  /** Weights, `[width, hidden]`. */
  weight: Float32Array;
  /** Bias, `[width]`; absent if there is none. */
  bias?: Float32Array;
}

/** Describes a network that answers all questions of a request together, from the states of all tokens (Clef). */
export interface JointHead {
  /** Name of the file with its weights. */
  file: string;
  hidden: number;
  width: number;
  /** Layers in which options look at all tokens, and in which questions look at each other and at all tokens. */
  routingLayers: number;
  layers: number;
  heads: number;
  /** Elements inside a feed-forward part. */
  inner: number;
}

/** Names a model in another repository. */
export interface BaseModel {
  repository: string;
  /** Branch, tag or commit; null for the newest. */
  revision: string | null;
}

/** Describes how a model is asked and how its answers are read. */
export type Contract = DecisionContract | WritingContract;

/** Describes what a model was trained to read and how its answer is read from it, as its author does. */
export interface DecisionContract {
  readonly info: ModelContract;
  readonly writes?: undefined;
  /** The model that this one's adapter changes, if the contract's files state it; otherwise the adapter's files do. */
  readonly base?: BaseModel;
  readonly limits: QuestionLimits;
  /** Maximum number of tokens of a row; a longer one is refused, never cut. */
  readonly maxTokens: number;
  /** True if the author lists true before false. */
  readonly trueFirst?: boolean;
  /** Formula of the author's confidence for each kind of question. */
  readonly confidence: Readonly<Record<QuestionKind, ConfidenceFormula>>;
  /** Reason why an answer may depend on the other questions of its request, if it does by design. */
  readonly dependence?: string;
  /**
   * Tokens that a token sees in a model that reads a prompt in one run, without a cache: all, or those before it.
   * Absent for a model that reads the state once for all questions.
   */
  readonly whole?: 'all' | 'causal';
  /**
   * Returns the layer that replaces the language model's head, from the files in a folder. Throws `engine_failed` for a
   * file that is missing or damaged. Absent if the contract reads the language model's own head.
   */
  lastLayer?(folder: string): LastLayer;
  /** The network that reads the states of all tokens, for rows that are read as `joint`. */
  readonly joint?: JointHead;
  /**
   * Binds the contract to the model's tokenizer and the files in a folder. Throws `engine_failed` if the tokenizer does
   * not fit the contract, or a file is missing or damaged.
   */
  open(text: ContractText, folder: string): OpenContract;
}

export interface OpenContract {
  /**
   * Token ids of the labels, in the order of the contract's table; null for a contract whose last layer has one output
   * for each label.
   */
  readonly labels: readonly number[] | null;
  /** Combines the outputs at the options and at the deciding token to one logit for each option. */
  combine?(options: readonly Float32Array[], decide: Float32Array): number[];
  /** Prepares the state of a request. */
  about(state: PyValue, questions: readonly Question[]): Asking;
}

/** Returns the abilities of a model that answers questions with options, and nothing else. */
export function decidesOnly(max_tokens: number, max_options = 255): ModelCapabilities {
  return { decide: 'options', extract: false, chat: false, abstains: false, max_tokens, max_options };
}

/** Returns a question with its options in the order in which the contract's author lists them. */
export function asListed({ trueFirst }: Pick<DecisionContract, 'trueFirst'>, question: Question): Question {
  if (question.kind !== 'predicate' || trueFirst) return question;
  return { ...question, options: question.options.toReversed() };
}

/** Returns the natural logarithms of softmax(logits / temperature). */
export function logSoftmax(logits: readonly number[], temperature = 1): number[] {
  const scaled = logits.map((logit) => logit / temperature);
  const highest = Math.max(...scaled);
  const total = highest + Math.log(scaled.reduce((sum, value) => sum + Math.exp(value - highest), 0));
  return scaled.map((value) => value - total);
}

/** Returns the number of tokens with which both lists begin. */
export function commonLength(one: readonly number[], other: readonly number[]): number {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  return length;
}

/**
 * Returns the writer of rows that chat about one state and read labels at their end. `shown` is the beginning of the
 * user's text, up to the end of the state, whose tokens the rows share.
 */
export function chatRows(
  { encode, chat }: ContractText,
  system: string,
  shown: string,
): (content: string, labels: number) => Row {
  const prompt = (content: string): string =>
    chat([
      { role: 'system', content: system },
      { role: 'user', content },
    ]);
  const alone = prompt(shown);
  const start = encode(alone.slice(0, alone.indexOf(shown) + shown.length));
  return (content, labels) => labelRow(encode(prompt(content)), start, labels);
}

/** Returns a row whose first `labels` labels are read at its end, and which may share the tokens of `start`. */
export function labelRow(ids: readonly number[], start: readonly number[], labels: number): Row {
  return { ids, shared: commonLength(ids, start), read: { labels: range(labels) } };
}

/** Reads the labels of one row as the answer. */
export function* readLabelTokens(row: Row, temperature = 1): Reading {
  const [logits = []] = yield [row];
  return logSoftmax(logits, temperature);
}

/** Lists the capital letters, then all pairs of them: the labels of most contracts. */
export function letterCodes(): string[] {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  return [...letters, ...letters.flatMap((first) => letters.map((second) => first + second))];
}

/** Returns the ids of labels that must be single tokens. Throws `engine_failed` if one is not. */
export function letterIds({ encode }: ContractText, labels: readonly string[]): number[] {
  return labels.map((label) => {
    const ids = encode(label);
    if (ids.length === 1) return at(ids, 0);
    throw new AssayError(
      'engine_failed',
      `The label ${label} is not a single token of this model's tokenizer. Download the model again.`,
    );
  });
}

/** Splits `count` options into runs whose sizes differ by at most one, the larger ones first. */
export function evenGroups(count: number, groups: number): number[][] {
  const base = Math.floor(count / groups);
  const extra = count % groups;
  let start = 0;
  return range(groups).map((group) => {
    const size = base + (group < extra ? 1 : 0);
    const members = range(size).map((i) => start + i);
    start += size;
    return members;
  });
}

/** Returns the numbers from 0 to `count - 1`. */
export const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

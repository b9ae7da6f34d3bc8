import type { Json } from '../../answer-shape.ts';
import type { NumberLanguage, NumberRules } from '../number/number-language.ts';
import type { StringLanguage, StringRules } from '../text/string-language.ts';

/**
 * A place in the answer: what may stand there. References, `allOf`, `anyOf` and `oneOf` are resolved away; nodes refer to each other
 * and may form cycles.
 */
export interface Node {
  /** The subschemas that all hold here. */
  readonly ids: readonly number[];
  alternatives: Alternative[];
  /** Objects and lists that the flattest value opens inside each other; Infinity: no value. */
  height: number;
  /** About the bytes of the shortest value; Infinity: no value, or one over the limit. */
  size: number;
}

export type Alternative = { height: number; size: number; from: Origin } & (
  | LiteralsAlternative
  | StringAlternative
  | NumberAlternative
  | ObjectAlternative
  | ArrayAlternative
);

/** How an alternative came about. */
export interface Origin {
  /** The subschemas that say it. */
  constraints: readonly number[];
  /** Subschemas that must not match, because another branch of their `oneOf` was taken. */
  exclusions: readonly number[];
  /**
   * False where the schema would allow this type only because it names none: `{"minLength": 3}` allows numbers, but what is written
   * is a string.
   */
  written: boolean;
}

export interface LiteralsAlternative {
  kind: 'literals';
  values: readonly Json[];
  /** Bytes of the shortest, and levels of the flattest. */
  shortest: number;
  flattest: number;
}

export interface StringAlternative {
  kind: 'string';
  rules: StringRules;
  /** What is written, less what `oneOf` takes away. */
  language: StringLanguage;
}

export interface NumberAlternative {
  kind: 'number';
  rules: NumberRules;
  language: NumberLanguage;
}

export interface ObjectAlternative {
  kind: 'object';
  /** In the order in which they are written. */
  members: readonly Member[];
  /** What other members hold where they are written; null: none are written. */
  extra: Node | null;
  /** What the schema says of other members, written or not. */
  others: 'any' | 'nothing' | Node;
}

export interface Member {
  name: string;
  node: Node;
  required: boolean;
}

export interface ArrayAlternative {
  kind: 'array';
  prefix: readonly Node[];
  /** Items after the prefix. */
  rest: Node;
  min: number;
  /** What is written at most. */
  max: number;
  /** What the schema allows at most. */
  allowed: number;
}

/** The node of the item at an index. */
export function itemAt(array: ArrayAlternative, index: number): Node {
  return array.prefix[index] ?? array.rest;
}

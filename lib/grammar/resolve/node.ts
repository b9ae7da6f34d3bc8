import type { Json } from '../../answer-shape.ts';
import type { NumberLanguage, NumberRules } from '../number/number-language.ts';
import type { StringLanguage, StringRules } from '../text/string-language.ts';

/**
 * Describes one value in the answer and its alternatives. References, `allOf`, `anyOf` and `oneOf` are resolved; nodes
 * refer to each other and may form cycles.
 */
export interface Node {
  /** The subschemas that all hold here. */
  readonly ids: readonly number[];
  alternatives: Alternative[];
  /** Objects and arrays that the flattest value opens inside each other; Infinity: no value. */
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

/** Tells which subschemas an alternative results from. */
export interface Origin {
  /** The subschemas that define it. */
  constraints: readonly number[];
  /** Subschemas that must not match, because another branch of their `oneOf` was chosen. */
  exclusions: readonly number[];
  /**
   * False if the schema allows this type only because it names none: `{"minLength": 3}` also allows numbers, but a
   * string is generated.
   */
  written: boolean;
}

export interface LiteralsAlternative {
  kind: 'literals';
  values: readonly Json[];
  /** Bytes of the shortest value, and levels of the flattest. */
  shortest: number;
  flattest: number;
}

export interface StringAlternative {
  kind: 'string';
  rules: StringRules;
  /** The generated texts, without those that `oneOf` excludes. */
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
  /** The node of undeclared members' values; null: none are written. */
  extra: Node | null;
  /** The schema's rule for undeclared members, written or not. */
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
  /** The most items that are written. */
  max: number;
  /** The most items that the schema allows. */
  allowed: number;
}

/** Returns the node of the item at an index. */
export function itemAt(array: ArrayAlternative, index: number): Node {
  return array.prefix[index] ?? array.rest;
}

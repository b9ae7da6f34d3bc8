import type { Json } from '../../contract/answer-shape.ts';
import type { NumberLanguage, NumberRules } from '../number/number-language.ts';
import type { StringRules } from '../text/compile-string.ts';
import type { StringLanguage } from '../text/string-language.ts';

/**
 * Describes one value in the answer by its alternatives. `$ref`, `allOf`, `anyOf` and `oneOf` are already resolved.
 * Nodes refer to each other and may form cycles.
 */
export interface Node {
  /** Indices of the subschemas that must all hold here. */
  readonly ids: readonly number[];
  alternatives: Alternative[];
  /**
   * Nesting depth (objects and arrays) of the least nested value; Infinity if there is no value, or none within the
   * limit.
   */
  height: number;
  /** Approximate length in bytes of the shortest value; Infinity if there is no value, or none within the limit. */
  size: number;
}

export type Alternative = { height: number; size: number; from: Origin } & (
  | LiteralsAlternative
  | StringAlternative
  | NumberAlternative
  | ObjectAlternative
  | ArrayAlternative
);

/** Tells from which subschemas an alternative results, by their indices in the document. */
export interface Origin {
  /** Indices of the subschemas that must all match. */
  constraints: readonly number[];
  /** Indices of the subschemas that must not match, because another branch of their `oneOf` was chosen. */
  exclusions: readonly number[];
  /**
   * False if the schema allows this type only because it names none: `{"minLength": 3}` also allows numbers, but a
   * string is generated.
   */
  generated: boolean;
}

export interface LiteralsAlternative {
  kind: 'literals';
  values: readonly Json[];
  /** Length of the shortest value as JSON text, in UTF-16 code units. */
  shortest: number;
  /** Nesting depth of the least nested value. */
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
  /** The members that are declared or required, in the order in which they are generated. */
  members: readonly Member[];
  /** The undeclared members that are generated, by disjoint sets of names; empty if none are. */
  extras: readonly ExtraMembers[];
  /**
   * The undeclared members that are valid, whether or not they are generated: any, none, or those whose value matches a
   * node. `any` also if that depends on the name.
   */
  others: 'any' | 'nothing' | Node;
  /** Minimum number of members. */
  min: number;
  /** Maximum number of members. */
  max: number;
}

/** Describes undeclared members: the names that they may have, and the node of their values. */
export interface ExtraMembers {
  names: StringLanguage;
  node: Node;
}

export interface Member {
  name: string;
  node: Node;
  required: boolean;
}

export interface ArrayAlternative {
  kind: 'array';
  prefix: readonly Node[];
  /** Node of every item after the prefix. */
  rest: Node;
  min: number;
  /** Maximum number of items that are generated. */
  max: number;
  /** Maximum number of items that the schema allows. */
  allowed: number;
  /** True if no two items may be equal. */
  unique: boolean;
}

/** Returns the node of the array's item at an index: its node in the prefix, or that of the rest. */
export function itemAt(array: ArrayAlternative, index: number): Node {
  return array.prefix[index] ?? array.rest;
}

import * as v from 'valibot';
import { at } from '../at.ts';
import { AssayError, type ErrorCode } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';

/** Describes an issue that a check found. */
export interface Finding {
  code: ErrorCode;
  /** Path of the invalid value, relative to the value that the rule checks; absent if that value itself is invalid. */
  at?: readonly (string | number)[];
  /** The part of the message after the path: `is required`. */
  message: string;
}

/**
 * Represents a check that Valibot lacks, such as one across the members of an object. A `rule` runs once all members
 * are valid on their own, a `presence` rule before that.
 */
export interface Rule<TInput> extends v.BaseValidation<TInput, TInput, v.BaseIssue<TInput>> {
  readonly type: 'rule' | 'presence';
  /** Returns the issue of a value; null if there is none. */
  find(value: TInput): Finding | null;
  /** The same function as `find`: Valibot copies `requirement` into its issue, for callers that see only the issue. */
  readonly requirement: Rule<TInput>['find'];
}

/** Creates a rule. `find` returns the issue of a value, or null if there is none. */
export function rule<TInput>(find: Rule<TInput>['find'], type: Rule<TInput>['type'] = 'rule'): Rule<TInput> {
  return {
    kind: 'validation',
    type,
    reference: rule,
    async: false,
    expects: null,
    find,
    requirement: find,
    '~run'(dataset, config) {
      if (dataset.typed && find(dataset.value)) v._addIssue(this, 'value', dataset, config);
      return dataset;
    },
  };
}

/**
 * Represents an expensive check, such as compiling a schema, which the handler of a valid request makes anyway.
 * Validation makes it only if another value is invalid, to find out which issue comes first in the document.
 */
export interface LateRule<TInput> extends v.BaseValidation<TInput, TInput, v.BaseIssue<TInput>> {
  readonly type: 'late_rule';
  /** Returns the error of the value at `path`; null if it is valid. `fuel` as in `lateRule`. */
  check(value: TInput, path: string, fuel: Fuel): AssayError | null;
}

/**
 * Creates a late rule.
 *
 * @param use throws an `AssayError` if the value at `path` is invalid; `fuel` is the compile budget that all late rules
 *   of a request share
 */
export function lateRule<TInput>(use: (value: NoInfer<TInput>, path: string, fuel: Fuel) => unknown): LateRule<TInput> {
  return {
    kind: 'validation',
    type: 'late_rule',
    reference: lateRule,
    async: false,
    expects: null,
    check(value, path, fuel) {
      try {
        use(value, path, fuel);
        return null;
      } catch (error) {
        if (error instanceof AssayError) return error;
        throw error;
      }
    },
    '~run': (dataset) => dataset,
  };
}

/**
 * Returns the rule that two names of one field may both have a value only if the values are equal (docs/interface.md,
 * D-5); null counts as no value.
 */
export function aliases<TInput extends object>(
  canonical: keyof NoInfer<TInput> & string,
  alias: keyof NoInfer<TInput> & string,
) {
  return rule<TInput>((value) => {
    const other = value[alias];
    if (other === undefined || other === null) return null;
    const one = value[canonical];
    if (one === undefined || one === null || isEqual(one, other)) return null;
    return { code: 'alias_conflict', at: [alias], message: `is another name of ${canonical}: send one of the two` };
  });
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/**
 * Returns the rule that the items of a list have distinct texts.
 *
 * @param code error code for a repeated text
 * @param text returns the text of an item
 * @param member returns the path, within an item, of the member that contains the text; the item itself by default
 */
export function distinct<TItem>(
  code: ErrorCode,
  text: (item: TItem) => string | undefined,
  member: (item: TItem) => readonly string[] = () => [],
) {
  return rule<TItem[]>((items) => {
    const repeated = firstRepeated(items.map(text));
    if (repeated === -1) return null;
    return { code, at: [repeated, ...member(at(items, repeated))], message: 'repeats an earlier one' };
  });
}

function firstRepeated(texts: readonly (string | undefined)[]): number {
  // Most lists are short, and comparing is faster there than building a set.
  if (texts.length <= 8) return texts.findIndex((text, i) => texts.indexOf(text) < i);
  const seen = new Set<string | undefined>();
  return texts.findIndex((text) => seen.size === seen.add(text).size);
}

/**
 * Returns the rule that exactly one of two members is present, whatever its value (docs/interface.md, D-3). Rules of
 * the type `presence` are checked together with unknown fields, before any value.
 */
export function exactlyOne<TInput extends object>(
  one: keyof NoInfer<TInput> & string,
  other: keyof NoInfer<TInput> & string,
) {
  return rule<TInput>((value) => {
    const sent = [one, other].filter((name) => Object.hasOwn(value, name));
    if (sent.length === 1) return null;
    return sent.length === 0
      ? { code: 'missing_input', message: `needs ${one} or ${other}` }
      : { code: 'conflicting_input', at: [other], message: `cannot be sent together with ${one}` };
  }, 'presence');
}

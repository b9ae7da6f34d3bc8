import * as v from 'valibot';
import { at } from '../at.ts';
import type { ErrorCode } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { isObject } from '../json/property.ts';

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
 * are valid on their own; of a list, it also checks the items before the first that is not. A `presence` rule runs in
 * any case.
 */
export interface Rule<TInput> extends v.BaseValidation<TInput, TInput, v.BaseIssue<TInput>> {
  readonly type: 'rule' | 'presence';
}

/** Creates a rule. `find` returns the issue of a value, or null if there is none. */
export function rule<TInput>(
  find: (value: TInput) => Finding | null,
  type: Rule<TInput>['type'] = 'rule',
): Rule<TInput> {
  return {
    kind: 'validation',
    type,
    reference: rule,
    async: false,
    expects: null,
    '~run'(dataset, config) {
      const checked = type === 'rule' ? validPart(dataset) : isObject(dataset.value) ? dataset.value : undefined;
      // The value has the type, so far as the rule may see it.
      const finding = checked === undefined ? null : find(checked as TInput);
      // Valibot copies `requirement` into its issue.
      if (finding) v._addIssue({ ...this, requirement: finding }, 'value', dataset, config);
      return dataset;
    },
  };
}

/** Returns the part of a value that a rule may check: all of it, the first items of a list, or nothing (undefined). */
function validPart({ value, issues }: v.OutputDataset<unknown, v.BaseIssue<unknown>>): unknown {
  if (!issues) return value;
  const real = issues.filter(({ type }) => type !== 'late_rule');
  if (real.length === 0) return value;
  if (!Array.isArray(value) || real.some(({ path }) => !path)) return undefined;
  return value.slice(0, Math.min(...real.map(({ path }) => Number(path?.[0].key))));
}

/** Checks a value at a path; `fuel` is the compile budget that all late rules of a request share. */
export type LateCheck = (value: unknown, path: string, fuel: Fuel) => unknown;

/**
 * Represents an expensive check, such as compiling a schema, which the handler of a valid request makes anyway. It only
 * marks the value with an issue that `validate` ignores, unless another value is invalid: then the check is made, to
 * find out which issue comes first in the document.
 */
export interface LateRule<TInput> extends v.BaseValidation<TInput, TInput, v.BaseIssue<TInput>> {
  readonly type: 'late_rule';
}

/** Creates a late rule. `use` throws an `AssayError` if the value at `path` is invalid. */
export function lateRule<TInput>(use: (value: NoInfer<TInput>, path: string, fuel: Fuel) => unknown): LateRule<TInput> {
  return {
    kind: 'validation',
    type: 'late_rule',
    reference: lateRule,
    async: false,
    expects: null,
    '~run'(dataset, config) {
      if (!config.abortEarly && validPart(dataset) !== undefined) {
        v._addIssue({ ...this, requirement: use }, 'value', dataset, config);
      }
      return dataset;
    },
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

/**
 * Returns the schema of a field that is not supported. A value is refused with `unsupported_parameter`, unless it is
 * null or `hasNoEffect` is true for it. The contract omits the field, so generated clients do not offer it.
 *
 * @param hasNoEffect tells whether a value leaves the meaning of the request as it is without the field
 * @param instead rest of the error message after the field's path: what to send instead
 */
export function unsupported(hasNoEffect: (value: unknown) => boolean, instead: string) {
  return v.nullish(
    v.pipe(
      v.unknown(),
      rule((value) => (hasNoEffect(value) ? null : { code: 'unsupported_parameter', message: instead })),
      v.metadata({ 'x-unsupported': true }),
    ),
  );
}

/** Tells whether a value is an empty list or object; false for all other kinds of values. */
export const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

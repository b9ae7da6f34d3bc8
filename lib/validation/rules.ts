import * as v from 'valibot';
import { AssayError, type ErrorCode } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';

/** What a rule found wrong. */
export interface Finding {
  code: ErrorCode;
  /** Where, in steps from the value that the rule stands on; absent: that value itself. */
  at?: readonly (string | number)[];
  /** What follows the path in the message: `is required`. */
  message: string;
}

/** A check across the members of one object or list, made once each of them is valid on its own. */
export interface Rule<TInput> extends v.BaseValidation<TInput, TInput, v.BaseIssue<TInput>> {
  readonly type: 'rule' | 'presence';
  find(value: TInput): Finding | null;
  /** `find` again: Valibot copies it into its issue, for those who see that alone. */
  readonly requirement: Rule<TInput>['find'];
}

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
 * A check that is made anyway when the valid request is put to use, too costly to make twice. It counts only where something else
 * is refused, to tell which of the two comes first in the document.
 */
export interface LateRule<TInput> extends v.BaseValidation<TInput, TInput, v.BaseIssue<TInput>> {
  readonly type: 'late_rule';
  judge(value: TInput, path: string, fuel: Fuel): AssayError | null;
}

/** `use` throws the `AssayError` of the value that stands at `path`; `fuel` is what all late rules of a request may take together. */
export function lateRule<TInput>(use: (value: NoInfer<TInput>, path: string, fuel: Fuel) => unknown): LateRule<TInput> {
  return {
    kind: 'validation',
    type: 'late_rule',
    reference: lateRule,
    async: false,
    expects: null,
    judge(value, path, fuel) {
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

/** Two names of one field may both be sent, with equal values (open-points.md, part A, "Fields"). */
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

/** Each text in a list once; `text` gives the one of an item, `member` the name of the member that holds it. */
export function distinct<TItem>(
  code: ErrorCode,
  text: (item: TItem) => string | undefined,
  member: (item: TItem) => readonly string[] = () => [],
) {
  return rule<TItem[]>((items) => {
    const repeated = firstRepeated(items.map(text));
    if (repeated === -1) return null;
    return { code, at: [repeated, ...member(items[repeated]!)], message: 'repeats an earlier one' };
  });
}

function firstRepeated(texts: readonly (string | undefined)[]): number {
  // Most lists are short, and comparing is faster there than making a set.
  if (texts.length <= 8) return texts.findIndex((text, i) => texts.indexOf(text) < i);
  const seen = new Set<string | undefined>();
  return texts.findIndex((text) => seen.size === seen.add(text).size);
}

/**
 * Exactly one of two members is there, whatever its value (decision-service.md, "Shared request fields"). Judged together with
 * unknown fields, before any value, so its type is `presence`.
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

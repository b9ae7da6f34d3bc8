import * as v from 'valibot';
import { AssayError } from '../errors.ts';
import { sharedFuel } from '../grammar/fuel.ts';
import { nearestName } from '../nearest-name.ts';
import { pathTo } from '../param-path.ts';
import type { Finding, LateCheck } from './rules.ts';

/**
 * Returns a valid request as a copy, with the defaults of its own fields (not of nested ones) filled in.
 *
 * @throws AssayError the first issue of an invalid request (docs/interface.md, D-15): first `unknown_field`,
 *   `missing_input` and `conflicting_input`, then invalid values; both groups in document order
 */
export function validate<TSchema extends v.GenericSchema>(schema: TSchema, value: unknown): v.InferOutput<TSchema> {
  const { output, found } = parse(schema, value);
  const late = found.filter(({ type }) => type === 'late_rule');
  // Members are as sent, not Valibot's copies: the text of a number is known by its list (written-numbers.ts).
  if (late.length === found.length) return { ...(output as object), ...(value as object) };
  const first = firstOf(found.filter(({ type }) => type !== 'late_rule').flatMap(unfolded));
  // This request is refused, so its handler will not make the late checks; one of them may fail earlier.
  const fuel = sharedFuel();
  const before = EARLY_CODES.has(first.code) ? [] : late.map(placed).filter((one) => inOrder(one, first) < 0);
  for (const { issue, at } of before.sort(inOrder)) {
    // The requirement of a late rule is its check.
    (issue.requirement as LateCheck)(issue.input, pathOf(at), fuel);
  }
  throw errorOf(first);
}

/** Largest number of issues that are compared: a hostile body may have one in each of its 250,000 values. */
const MOST_ISSUES = 1000;

class TooManyIssues extends Error {}

/** Parses a value with Valibot. Returns all of its issues; only one that Valibot found first if there are too many. */
function parse(schema: v.GenericSchema, value: unknown): { output: unknown; found: Issue[] } {
  let count = 0;
  // Called for each issue. Valibot's own message is not used: it quotes the value, which may be a whole document.
  const message = (issue: Issue) => {
    if (issue.type !== 'late_rule' && ++count > MOST_ISSUES) throw new TooManyIssues();
    return '';
  };
  let result: v.SafeParseResult<v.GenericSchema>;
  try {
    result = v.safeParse(schema, value, { message });
  } catch (error) {
    if (!(error instanceof TooManyIssues)) throw error;
    result = v.safeParse(schema, value, { abortEarly: true });
  }
  return { output: result.output, found: result.issues ?? [] };
}

type Issue = v.BaseIssue<unknown>;
type Step = Pick<v.IssuePathItem, 'input' | 'key'>;

/** Represents an issue in our words, with its place in the document. */
interface Placed extends Finding {
  issue: Issue;
  /** Steps to the value that has the issue. */
  at: readonly (string | number)[];
  /** Steps to the value at whose end the issue counts, in document order. */
  end: readonly Step[];
}

/** Codes of the issues that are reported before any other, wherever they are. */
const EARLY_CODES: ReadonlySet<string> = new Set(['unknown_field', 'missing_input', 'conflicting_input']);

function firstOf(issues: readonly Issue[]): Placed {
  const all = issues.map(placed);
  const early = all.filter(({ code }) => EARLY_CODES.has(code));
  return (early.length > 0 ? early : all).reduce((first, one) => (inOrder(one, first) < 0 ? one : first));
}

/** Returns the issues of the option of a union that the value was meant for; the union's own if it fits none. */
function unfolded(issue: Issue): Issue[] {
  if (issue.type !== 'union') return [issue];
  const meant = (issue.issues ?? []).filter(
    ({ path, kind, type, input }) => path || kind !== 'schema' || (type === 'picklist' && typeof input === 'string'),
  );
  if (meant.length === 0) return [issue];
  // The path of an issue within a union begins at the union's value.
  return meant.flatMap((one) => unfolded({ ...one, path: joined(issue.path, one.path) }));
}

function joined(one: Issue['path'], other: Issue['path']): Issue['path'] {
  return one && other ? [...one, ...other] : (one ?? other);
}

/** Compares two issues by their place in the document. A value ends after all that it contains. */
function inOrder({ end: one }: Placed, { end: other }: Placed): number {
  const fork = one.findIndex(({ key }, i) => key !== other[i]?.key);
  const [mine, theirs] = fork === -1 ? [undefined, other[one.length]] : [one[fork], other[fork]];
  if (!mine || !theirs) return Number(theirs !== undefined) - Number(mine !== undefined);
  if (typeof mine.key === 'number') return mine.key - Number(theirs.key);
  // Both steps are names of members of the same object.
  for (const name in mine.input as object)
    if (name === mine.key || name === theirs.key) return name === mine.key ? -1 : 1;
  return 0;
}

function pathOf(steps: readonly (string | number)[]): string {
  return steps.reduce<string>(pathTo, '');
}

function errorOf({ code, message, at }: Placed): AssayError {
  const param = pathOf(at);
  return new AssayError(code, `${param || 'The request'} ${message}.`, param ? { param } : {});
}

/** Words an issue, and places it: that of a whole object or list, such as a missing member, counts as at its end. */
function placed(issue: Issue): Placed {
  const { kind, type, expected, input, requirement } = issue;
  const path: readonly v.IssuePathItem[] = issue.path ?? [];
  // All steps are names of members or indices of items.
  const at = path.map(({ key }) => key as string | number);
  const here = { issue, at, end: path };
  const step = path.at(-1);
  switch (type) {
    case 'rule':
    case 'presence': {
      // The requirement of a rule is what it found.
      const { at: below = [], ...finding } = requirement as Finding;
      const [item] = below;
      // An item that breaks a rule of its list counts as at its own end.
      const end = Array.isArray(input) && typeof item === 'number' ? [...path, { input, key: item }] : path;
      return { issue, ...finding, at: [...at, ...below], end };
    }
    case 'object':
    case 'strict_object':
      if (step?.origin !== 'key') return { ...here, ...NO_OBJECT };
      // Our schemas name the members that an object may have (objects.ts).
      if (expected === 'never') return { ...here, ...unknownField(String(step.key), requirement as readonly string[]) };
      return { ...here, ...REQUIRED, end: path.slice(0, -1) };
    case 'variant': {
      if (expected === 'Object' || !step) return { ...here, ...NO_OBJECT };
      const known = requirement as readonly string[] | undefined;
      const stranger = known && Object.keys(step.input as object).find((name) => !known.includes(name));
      if (known && stranger !== undefined) {
        const end = [...path.slice(0, -1), { input: step.input, key: stranger }];
        return { issue, ...unknownField(stranger, known), at: [...at.slice(0, -1), stranger], end };
      }
      if (input === undefined) return { ...here, ...REQUIRED, end: path.slice(0, -1) };
      return { ...here, ...oneOf(issue) };
    }
    case 'picklist':
    case 'literal':
      return { ...here, ...oneOf(issue) };
    case 'union':
      return { ...here, code: 'invalid_type', message: `must be ${kindsOf(issue.issues ?? [])}` };
    case 'integer':
      return { ...here, code: 'invalid_type', message: 'must be a whole number' };
  }
  if (kind === 'schema') return { ...here, code: 'invalid_type', message: `must be ${KINDS[type] ?? 'an object'}` };
  const bound: Finding = {
    code: 'invalid_value',
    message: boundOf(type, requirement, Array.isArray(input) ? 'items' : 'characters'),
  };
  // A list is too long from its first item beyond the limit.
  if (type === 'max_length' && Array.isArray(input)) {
    return { ...here, ...bound, end: [...path, { input, key: Number(requirement) }] };
  }
  return { ...here, ...bound };
}

const REQUIRED: Finding = { code: 'missing_field', message: 'is required' };
const NO_OBJECT: Finding = { code: 'invalid_type', message: 'must be an object' };

function oneOf({ input, expected }: Issue): Finding {
  const choices = expected?.replace(/^\(|\)$/g, '').replaceAll(' | ', ', ');
  return { code: typeof input === 'string' ? 'invalid_value' : 'invalid_type', message: `must be one of: ${choices}` };
}

/** Names of what a schema takes, by its type; the other types take objects. All picklists contain only strings. */
const KINDS: { readonly [type: string]: string } = {
  string: 'a string',
  picklist: 'a string',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
};

/** Names what the options of a union take, from their issues. */
function kindsOf(issues: readonly Issue[]): string {
  return [...new Set(issues.map(({ type }) => KINDS[type] ?? 'an object'))].join(' or ');
}

function boundOf(type: string, requirement: unknown, unit: string): string {
  switch (type) {
    case 'min_value':
      return `must be at least ${requirement}`;
    case 'max_value':
      return `must be at most ${requirement}`;
    case 'min_length':
      return requirement === 1 ? 'must not be empty' : `must have at least ${requirement} ${unit}`;
    case 'length':
      return `must have exactly ${requirement} ${requirement === 1 ? unit.slice(0, -1) : unit}`;
    case 'max_length':
    case 'max_code_points':
      return `must have at most ${requirement} ${unit}`;
    case 'regex':
      // The requirement of `regex` is a pattern.
      return `must match ${(requirement as RegExp).source}`;
    default:
      return 'is not allowed';
  }
}

/**
 * Fields that callers send for an effect that this API offers in another way. The advice applies to schemas that have
 * the field `where`.
 */
const INSTEAD: readonly { names: readonly string[]; where: string; advice: string }[] = [
  {
    names: ['reason', 'reasoning', 'explain', 'explanation'],
    where: 'question',
    advice: 'To get a reason, ask for it in instruction, such as "Give a short reason"',
  },
  { names: ['max_tokens', 'max_completion_tokens'], where: 'max_output_tokens', advice: 'Send max_output_tokens' },
];

/**
 * Returns the finding for a field that the schema does not define. `known` lists the fields that it defines. The
 * message suggests the field that was probably meant or what to do instead; otherwise it says to remove the field.
 */
export function unknownField(name: string, known: readonly string[]): Finding {
  return { code: 'unknown_field', message: `is not a field of this request. ${adviceOn(name, known)}` };
}

function adviceOn(name: string, known: readonly string[]): string {
  const meant = nearestName(name, known);
  if (meant !== undefined) return `Did you mean “${meant}”? If not, remove it`;
  const instead = INSTEAD.find(({ names, where }) => names.includes(name) && known.includes(where));
  return instead?.advice ?? 'Remove it';
}

import type * as v from 'valibot';
import type { Node } from './node.ts';
import type { Finding, Rule } from './rules.ts';

/** What Valibot has against a value, as code and words. Its own message quotes the value, which may be a whole document. */
export function findingOf(check: ValibotItem, value: unknown): Finding | null {
  const [issue] = (check as v.GenericValidation)['~run']({ typed: true, value }, { abortEarly: true }).issues ?? [];
  if (!issue) return null;
  if (issue.type === 'rule') return (issue.requirement as Rule<unknown>['find'])(issue.input);
  const at = (issue.path ?? []).map((step) => step.key as string | number);
  return { at, ...(issue.kind === 'schema' ? wrongKind(issue) : outOfBounds(issue)) };
}

type ValibotItem = Node | v.GenericPipeAction;

function wrongKind({ type, input, expected, path }: v.BaseIssue<unknown>): Finding {
  if (path && input === undefined) return { code: 'missing_field', message: 'is required' };
  if (type === 'picklist' || type === 'literal' || path) {
    const choices = expected?.replace(/^\(|\)$/g, '').replaceAll(' | ', ', ');
    return {
      code: typeof input === 'string' ? 'invalid_value' : 'invalid_type',
      message: `must be one of: ${choices}`,
    };
  }
  return { code: 'invalid_type', message: `must be ${KINDS[type] ?? 'of another type'}` };
}

const KINDS: { readonly [schema: string]: string } = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  strict_object: 'an object',
  variant: 'an object',
  custom: 'an object',
  union: 'a string or a list',
};

function outOfBounds({ type, input, requirement }: v.BaseIssue<unknown>): Finding {
  if (type === 'integer') return { code: 'invalid_type', message: 'must be a whole number' };
  return { code: 'invalid_value', message: boundOf(type, requirement, Array.isArray(input) ? 'items' : 'characters') };
}

function boundOf(type: string, requirement: unknown, unit: string): string {
  switch (type) {
    case 'min_value':
      return `must be at least ${requirement}`;
    case 'max_value':
      return `must be at most ${requirement}`;
    case 'min_length':
      return requirement === 1 ? 'must not be empty' : `must have at least ${requirement} ${unit}`;
    case 'max_length':
    case 'max_code_points':
      return `must have at most ${requirement} ${unit}`;
    case 'regex':
      return `must match ${(requirement as RegExp).source}`;
    default:
      return 'is not allowed';
  }
}

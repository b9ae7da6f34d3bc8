import type * as v from 'valibot';
import type { Finding } from './rules.ts';

/**
 * Checks a value with Valibot and returns the first issue, in our words; null if the value is valid. Valibot's own
 * message is not used, because it quotes the value, which may be a whole document.
 */
export function findingOf(validation: v.GenericSchema | v.GenericValidation, value: unknown): Finding | null {
  dataset.value = value;
  // Schemas and validations have the same `~run`, so the cast is safe.
  const { issues } = (validation as v.GenericValidation)['~run'](dataset, ABORT_EARLY);
  if (!issues) return null;
  dataset = { typed: true, value: undefined };
  return issues[0].kind === 'schema' ? wrongKind(issues[0]) : outOfBounds(issues[0]);
}

const ABORT_EARLY = { abortEarly: true } as const;
/** Valibot's input object. It is reused until a value is refused, which saves an allocation for each value. */
let dataset: v.SuccessDataset<unknown> = { typed: true, value: undefined };

function wrongKind({ type, input, expected }: v.BaseIssue<unknown>): Finding {
  if (type === 'picklist' || type === 'literal') {
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
  custom: 'an object',
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
      // The cast is safe, because the requirement of `regex` is a pattern.
      return `must match ${(requirement as RegExp).source}`;
    default:
      return 'is not allowed';
  }
}

import * as v from 'valibot';
import { AssayError } from '../errors.ts';
import type { Node } from './node.ts';
import { presenceIssue } from './presence.ts';
import { valueIssue } from './value.ts';

/**
 * The value as its schema types it, defaults filled in.
 *
 * Valibot judges. What it reports first follows the schema, though, and the document wants unknown fields before values, each in
 * the order sent (open-points.md, part A, "Order of checks"); so a refused value is walked again for the issue to report.
 *
 * @throws AssayError with the first issue: `unknown_field`, `missing_input`, `conflicting_input`, then the codes of 422.
 */
export function validate<TSchema extends v.GenericSchema>(schema: TSchema, value: unknown): v.InferOutput<TSchema> {
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (result.success) return result.output;
  const node = schema as unknown as Node;
  throw (
    presenceIssue(node, value, '') ??
    valueIssue(node, value, '') ??
    new AssayError('invalid_value', 'The request does not fit its schema.', { cause: result.issues })
  );
}

import * as v from 'valibot';
import { ERROR_TYPES } from '../error-status.ts';
import { ERROR_CODES } from '../errors.ts';
import { described, exactOptional } from './values.ts';

export const ErrorDetails = v.object({
  type: v.picklist(ERROR_TYPES),
  message: described(v.string(), 'What is wrong, and what to do. Written for developers and logs, not for end users.'),
  param: exactOptional(
    v.string(),
    'Path of the field at fault, such as tasks[2].options[0], or name of the header at fault.',
  ),
  code: described(v.picklist(ERROR_CODES), 'Machine-readable code from a closed list.'),
});

/** The body of error responses (docs/interface.md, D-16). */
export const ErrorBody = v.object({ error: ErrorDetails });
export type ErrorBody = v.InferOutput<typeof ErrorBody>;

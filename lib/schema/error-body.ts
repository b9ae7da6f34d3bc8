import * as v from 'valibot';
import { ERROR_TYPES } from '../error-status.ts';
import { ERROR_CODES } from '../errors.ts';

export const ErrorDetails = v.object({
  type: v.picklist(ERROR_TYPES),
  message: v.pipe(
    v.string(),
    v.description('What is wrong, and what to do. Written for developers and logs, not for end users.'),
  ),
  param: v.exactOptional(
    v.pipe(
      v.string(),
      v.description('Path of the field at fault, such as tasks[2].options[0], or name of the header at fault.'),
    ),
  ),
  code: v.pipe(v.picklist(ERROR_CODES), v.description('Machine-readable code from a closed list.')),
});

/** The body of error responses (docs/interface.md, D-16). */
export const ErrorBody = v.object({ error: ErrorDetails });
export type ErrorBody = v.InferOutput<typeof ErrorBody>;

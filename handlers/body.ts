import type * as v from 'valibot';
import { type BodyLimits, checkContentType, MAX_BODY_BYTES, readBytes, readJson } from '../lib/json/body.ts';
import type { BodyBudget } from '../lib/json/body-budget.ts';
import { parseJson } from '../lib/json/parse.ts';
import { validate } from '../lib/validation/validate.ts';
import type { AppContext, AppMiddleware } from './context.ts';

/**
 * Returns middleware that sets the context variable `body` to the request's share of the body budget. Releases the
 * share when the request is answered or its stream begins.
 */
export function limitBodies(budget: BodyBudget): AppMiddleware {
  return async (c, next) => {
    const share = budget.share();
    c.set('body', share);
    try {
      await next();
    } finally {
      share.release();
    }
  };
}

/**
 * Reads and validates the JSON body of a request to the model server, which requires a JSON content type.
 *
 * @throws AssayError `unsupported_media_type`, `request_too_large`, `overloaded` or `malformed_json` if the body cannot
 *   be read (`readJson`); the error of its first issue if it does not match the schema (`validate`)
 */
export async function readRequest<TSchema extends v.GenericSchema>(
  c: AppContext,
  schema: TSchema,
  limits: BodyLimits = {},
): Promise<v.InferOutput<TSchema>> {
  return validate(schema, await readJson(c.req.raw, { contentType: 'required', share: c.get('body'), ...limits }));
}

/**
 * Reads the body of an operation that needs none, and ignores its content.
 *
 * @throws AssayError `unsupported_media_type`, `request_too_large`, `overloaded` or `malformed_json` if a body was sent
 *   that is not valid JSON within the limits
 */
export async function readNothing(c: AppContext): Promise<void> {
  const { headers, body } = c.req.raw;
  const bytes = await readBytes(body, MAX_BODY_BYTES, c.get('body')).catch((error: unknown) => {
    // If the content type is wrong too, that error takes precedence.
    checkContentType(headers, 'required');
    throw error;
  });
  if (bytes.byteLength === 0) return;
  checkContentType(headers, 'required');
  parseJson(bytes);
}

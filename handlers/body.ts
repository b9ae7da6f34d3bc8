import type * as v from 'valibot';
import { type BodyLimits, checkContentType, readBody, readJson, STANDARD_DECODERS } from '../lib/json/body.ts';
import type { BodyBudget } from '../lib/json/body-budget.ts';
import { type JsonValue, parseJson, sourceText } from '../lib/json/parse.ts';
import { validate } from '../lib/validation/validate.ts';
import { compiled } from './compiled.ts';
import type { AppContext, AppDeps, AppMiddleware } from './context.ts';

/**
 * Returns middleware that sets the context variable `body`: the request's share of the body budget, and the content
 * encodings that are decoded. Releases the share when the request is answered or its stream begins.
 */
export function limitBodies(
  budget: BodyBudget,
  { decoders = STANDARD_DECODERS, turn }: Pick<AppDeps, 'decoders' | 'turn'>,
): AppMiddleware {
  const accepted = Object.keys(decoders).join(', ');
  return async (c, next) => {
    const share = budget.share();
    c.set('body', { share, decoders, ...(turn ? { turn: () => turn(c.get('key')?.name ?? '') } : {}) });
    try {
      await next();
      // RFC 7694, section 3: what a client may send instead.
      if (c.res.status === 415) c.res.headers.set('accept-encoding', accepted);
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
  const json = await readJson(c.req.raw, { contentType: 'required', ...c.get('body'), ...limits });
  const text = sourceText(json);
  if (text !== undefined) c.set('text', text);
  return compiled(c, text, () => validate(schema, json));
}

/**
 * Reads the body of an operation that needs none, and returns its value; undefined if none was sent.
 *
 * @throws AssayError `unsupported_media_type`, `request_too_large`, `overloaded` or `malformed_json` if a body was sent
 *   that is not valid JSON within the limits
 */
export async function readOptional(c: AppContext): Promise<JsonValue | undefined> {
  const { headers } = c.req.raw;
  const bytes = await readBody(c.req.raw, c.get('body')).catch((error: unknown) => {
    // If the content type is wrong too, that error takes precedence.
    checkContentType(headers, 'required');
    throw error;
  });
  if (bytes.byteLength === 0) return undefined;
  checkContentType(headers, 'required');
  return parseJson(bytes);
}

import type * as v from 'valibot';
import { checkContentType, MAX_BODY_BYTES, readBytes, readJson } from '../lib/json/body.ts';
import { validate } from '../lib/validation/validate.ts';
import type { AppContext } from './context.ts';

/** The body of a model server request, checked against its schema. */
export async function readRequest<TSchema extends v.GenericSchema>(
  c: AppContext,
  schema: TSchema,
): Promise<v.InferOutput<TSchema>> {
  return validate(schema, await readJson(c.req.raw, { contentType: 'required' }));
}

/** For a call without a body: whatever is there must be JSON, and says nothing. */
export async function readNothing(c: AppContext): Promise<void> {
  const { headers, body } = c.req.raw;
  if (headers.has('content-type')) checkContentType(headers, 'required');
  const bytes = await readBytes(body, MAX_BODY_BYTES);
  if (bytes.byteLength > 0) checkContentType(headers, 'required');
}

import { AssayError } from './errors.ts';

/**
 * Represents a well-formed model id, `<namespace>/<name>`: safe to display, to compare and to use in a path. Created
 * only by `asModelId`.
 */
export type ModelId = string & { readonly __brand: 'ModelId' };

/** Pattern of a model id, in the syntax of JSON Schema's `pattern`. The OpenAPI contract contains it, too. */
export const MODEL_ID_PATTERN = '^(?!.*\\.\\.)[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$';
const MODEL_ID = new RegExp(MODEL_ID_PATTERN);

/** Returns the text as a model id, or null if it is not well-formed (docs/model-api.md, M-2). */
export function asModelId(text: string): ModelId | null {
  // The pattern has been checked, so the cast is safe.
  return MODEL_ID.test(text) ? (text as ModelId) : null;
}

/**
 * Returns the text as a model id (docs/model-api.md, M-2).
 *
 * @throws AssayError `invalid_model_id`, with the `param` `model`, if the text is not well-formed
 */
export function parseModelId(text: string): ModelId {
  const id = asModelId(text);
  if (id) return id;
  throw new AssayError(
    'invalid_model_id',
    'A model id is <namespace>/<name>, such as assay/starter. Each part has 1 to 96 of the characters A-Z a-z 0-9 . _ -, begins with a letter or digit, and has no "..".',
    { param: 'model' },
  );
}

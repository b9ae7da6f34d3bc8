import { AssayError } from './errors.ts';

/**
 * Represents a checked model id, `<namespace>/<name>`: safe to display, to compare and to use in a path. Only
 * `parseModelId` creates one.
 */
export type ModelId = string & { readonly __brand: 'ModelId' };

/** Pattern of a model id, in the syntax of JSON Schema's `pattern`, for the contract. */
export const MODEL_ID_PATTERN = '^(?!.*\\.\\.)[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$';
const MODEL_ID = new RegExp(MODEL_ID_PATTERN);

/** Returns the text as a model id, or null if it is not well-formed (docs/interface.md, M-2). */
export function asModelId(text: string): ModelId | null {
  // This is the only place that creates a `ModelId`, so the cast is checked.
  return MODEL_ID.test(text) ? (text as ModelId) : null;
}

/** Parses a model id as `asModelId` does, but throws `invalid_model_id`. */
export function parseModelId(text: string, param = 'model'): ModelId {
  const id = asModelId(text);
  if (id) return id;
  throw new AssayError(
    'invalid_model_id',
    'A model id is <namespace>/<name>, each part 1 to 96 of A-Z a-z 0-9 . _ -, beginning with a letter or digit, without "..". Example: assay/starter.',
    { param },
  );
}

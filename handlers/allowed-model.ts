import { type ModelId, parseModelId } from '../lib/model-id.ts';
import { checkRight } from './auth.ts';
import type { AppContext } from './context.ts';

/**
 * Returns the model id of a request if the caller's key may use the model.
 *
 * @throws AssayError `invalid_model_id` if the text is not a model id, `model_not_allowed` if the key may not use the
 *   model; both with the `param` `model`
 */
export function allowedModel(c: AppContext, text: string): ModelId {
  const id = parseModelId(text);
  checkRight(c, id);
  return id;
}

import { type ModelId, parseModelId } from '../lib/model-id.ts';
import { checkRight } from './auth.ts';
import type { AppContext } from './context.ts';

/**
 * Parses the model id of a request and checks that the caller's key may use the model.
 *
 * @throws AssayError `invalid_model_id` or `model_not_allowed`, with the `param` `model`
 */
export function allowedModel(c: AppContext, text: string): ModelId {
  const id = parseModelId(text);
  checkRight(c, id);
  return id;
}

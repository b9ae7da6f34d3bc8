import { type ModelId, parseModelId } from '../lib/model-id.ts';
import { checkRight } from './auth.ts';
import type { AppContext } from './context.ts';

/**
 * Parses the model id of a request and checks that the caller's key may use the model.
 *
 * @param param path of the model id in the request, for errors
 * @throws AssayError `invalid_model_id` or `model_not_allowed`
 */
export function allowedModel(c: AppContext, text: string, param = 'model'): ModelId {
  const id = parseModelId(text, param);
  checkRight(c, id);
  return id;
}

import { type ModelId, parseModelId } from '../lib/model-id.ts';
import { checkRight } from './auth.ts';
import type { AppContext } from './context.ts';

/**
 * Returns the model id that a request names. Throws if it is not well-formed, or if the caller's key has no right to
 * the model.
 */
export function allowedModel(c: AppContext, text: string, param = 'model'): ModelId {
  const id = parseModelId(text, param);
  checkRight(c, id);
  return id;
}

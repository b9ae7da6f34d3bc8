import { type ModelId, parseModelId } from '../lib/model-id.ts';
import { checkRight } from './auth.ts';
import type { AppContext } from './context.ts';

/** A model id as sent, checked: well formed, and the key may use it. */
export function allowedModel(c: AppContext, text: string, param = 'model'): ModelId {
  const id = parseModelId(text, param);
  checkRight(c, id);
  return id;
}

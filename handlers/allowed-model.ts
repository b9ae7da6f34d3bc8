import { type ModelId, parseModelId } from '../lib/model-id.ts';
import { checkRight } from './auth.ts';
import type { AppContext } from './context.ts';

/** Checks a model id as sent: it must be well formed, and the key must have a right to the model. */
export function allowedModel(c: AppContext, text: string, param = 'model'): ModelId {
  const id = parseModelId(text, param);
  checkRight(c, id);
  return id;
}

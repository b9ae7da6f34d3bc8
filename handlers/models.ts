import type { ModelList } from '../lib/schema/model-list.ts';
import { callOf } from './call.ts';
import type { AppDeps, AppHandler } from './context.ts';

/** `GET /v1/models`, `GET /models` */
export function listModels({ backend, quota }: AppDeps): AppHandler {
  return async (c) => {
    const models = await backend.listModels(callOf(c, quota));
    return c.json<ModelList>({
      object: 'list',
      data: models.map(({ id, ...facts }) => ({ id, object: 'model', ...facts })),
    });
  };
}

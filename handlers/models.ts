import type { ListedModel } from '../lib/backend.ts';
import type { Model, ModelList } from '../lib/schema/model-list.ts';
import { unknownModel } from '../lib/unknown-model.ts';
import { checkRight } from './auth.ts';
import { callOf } from './call.ts';
import type { AppDeps, AppHandler } from './context.ts';

/** Handles `GET /v1/models` and `GET /models`: lists all models that the backend knows. */
export function listModels({ backend, quota }: AppDeps): AppHandler {
  return async (c) => {
    const models = await backend.listModels(callOf(c, quota));
    return c.json<ModelList>({ object: 'list', data: models.map(modelBody) });
  };
}

/**
 * Handles `GET /v1/models/{model_id}`: returns one entry of the model list. Throws `model_not_allowed` if the caller's
 * key may not use the model, and `model_not_found` if the backend does not have it.
 */
export function retrieveModel({ backend, quota }: AppDeps): AppHandler {
  return async (c) => {
    const wanted = c.req.param('model_id') ?? '';
    const call = callOf(c, quota);
    checkRight(c, wanted);
    const models = await backend.listModels(call);
    const found = models.find(({ id }) => id === wanted);
    if (found) return c.json<Model>(modelBody(found));
    const served = models.filter(({ status }) => status === 'active').map(({ id }) => id);
    throw unknownModel(wanted, { served, known: models.map(({ id }) => id) });
  };
}

function modelBody({ id, created = 0, ...facts }: ListedModel): Model {
  return { id, object: 'model', created, owned_by: id.slice(0, id.indexOf('/')), ...facts };
}

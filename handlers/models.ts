import type { ListedModel } from '../lib/backend.ts';
import { mayUse } from '../lib/keys.ts';
import { unknownModel } from '../lib/models/unknown-model.ts';
import { LOADED_MODEL } from '../lib/questions/systemone.ts';
import type { Model, ModelList, NamedModel } from '../lib/schema/model-list.ts';
import { checkRight } from './auth.ts';
import { callOf } from './call.ts';
import type { AppHandler, Services } from './context.ts';

/** Handles `GET /v1/models` and `GET /models`: lists all models that the backend knows. */
export function listModels({ backend, quota, aliases }: Services): AppHandler {
  return async (c) => {
    const key = c.get('key');
    const all = await backend.listModels(callOf(c, quota));
    // A key sees the models that it may use.
    const models = key ? all.filter(({ id }) => mayUse(key, id)) : all;
    const active = models.find(({ status }) => status === 'active');
    const others = active ? [...LOADED_MODEL, ...aliases] : [];
    return c.json<ModelList>({
      object: 'list',
      data: models.map(modelBody),
      models: [
        ...models.map((model) => namedModel(model.id, model, `Model on this server (${model.status}).`)),
        ...others.map((name) => namedModel(name, active, `Another name of ${active?.id}.`)),
      ],
    });
  };
}

function namedModel(name: string, model: ListedModel | undefined, description: string): NamedModel {
  const released = new Date((model?.created ?? 0) * 1000).toISOString().slice(0, 10);
  return { name, description, release_date: released };
}

/**
 * Handles `GET /v1/models/{model_id}`: returns one entry of the model list. Throws `model_not_allowed` if the caller's
 * key may not use the model, and `model_not_found` if the backend does not have it.
 */
export function retrieveModel({ backend, quota, aliases }: Services): AppHandler {
  return async (c) => {
    const wanted = c.req.param('model_id') ?? '';
    const call = callOf(c, quota);
    if (!aliases.has(wanted)) checkRight(c, wanted);
    const models = await backend.listModels(call);
    const found = models.find(({ id, status }) => (aliases.has(wanted) ? status === 'active' : id === wanted));
    if (found) checkRight(c, found.id);
    if (found) return c.json<Model>(modelBody(found));
    const served = models.filter(({ status }) => status === 'active').map(({ id }) => id);
    throw unknownModel(wanted, { served, known: models.map(({ id }) => id) });
  };
}

function modelBody({ id, created = 0, ...facts }: ListedModel): Model {
  return { id, object: 'model', created, owned_by: id.slice(0, id.indexOf('/')), ...facts };
}

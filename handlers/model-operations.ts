import { type ModelId, parseModelId } from '../lib/model-id.ts';
import type { ModelHost } from '../lib/models/host.ts';
import {
  type DeleteRequest,
  type DeleteResponse,
  type LoadRequest,
  type LoadResponse,
  UnloadRequest,
  type UnloadResponse,
} from '../lib/schema/model-operations.ts';
import { validate } from '../lib/validation/validate.ts';
import { checkRight } from './auth.ts';
import { readOptional } from './body.ts';
import type { AppContext, AppHandler } from './context.ts';

/**
 * Handles `POST /load` and `POST /v1/models/load`: loads a model, compiled first if needed, and answers when it is
 * loaded.
 */
export function load(host: ModelHost) {
  return async (c: AppContext, sent: LoadRequest): Promise<Response> => {
    const { max_prompt_len: maxPromptLen, keep_others: keepOthers, evict } = sent;
    const report = await host.load(allowedModel(c, sent.model), {
      ...(maxPromptLen === undefined ? {} : { maxPromptLen }),
      ...(keepOthers === undefined ? {} : { keepOthers }),
      ...(evict === undefined ? {} : { evict }),
    });
    return c.json<LoadResponse>({ status: 'success', state: 'loaded', ...report });
  };
}

/**
 * Handles `POST /unload`: unloads the model that the body names, or else the active one, and answers with its id, or
 * null if it was not loaded.
 */
export function unload(host: ModelHost): AppHandler {
  return async (c) => {
    const sent = await readOptional(c);
    const { model: named } = sent === undefined ? {} : validate(UnloadRequest, sent);
    const wanted = named === undefined ? undefined : allowedModel(c, named);
    const active = host.active().model;
    if (wanted === undefined && active !== null) checkRight(c, active);
    const { model } = await host.unload(wanted);
    return c.json<UnloadResponse>({ status: 'success', model, state: 'unloaded' });
  };
}

/** Handles `POST /delete` and `POST /v1/models/delete`: deletes the files of a model, or only the compiled ones. */
export function deleteModel(host: ModelHost) {
  return (c: AppContext, { model, compiled_only }: DeleteRequest): Promise<Response> =>
    remove(c, host, allowedModel(c, model), compiled_only);
}

/** Handles `DELETE /v1/models/{model_id}`: deletes all files of a model. The slash in the id may be sent as `%2F`. */
export function deleteModelByPath(host: ModelHost): AppHandler {
  return async (c) => {
    await readOptional(c);
    return remove(c, host, allowedModel(c, c.req.param('model_id') ?? ''), false);
  };
}

async function remove(c: AppContext, host: ModelHost, id: ModelId, compiledOnly: boolean): Promise<Response> {
  const { model, removed, weightsLeft } = await host.remove(id, { compiledOnly });
  const state = weightsLeft ? 'downloaded' : 'deleted';
  return c.json<DeleteResponse>({ status: 'success', model, state, removed: [...removed] });
}

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

import type { ModelHost } from '../lib/host.ts';
import { type ModelId, parseModelId } from '../lib/model-id.ts';
import type {
  DeleteRequest,
  DeleteResponse,
  LoadRequest,
  LoadResponse,
  UnloadResponse,
} from '../lib/schema/model-operations.ts';
import { checkRight } from './auth.ts';
import { readNothing } from './body.ts';
import type { AppContext, AppHandler } from './context.ts';

/**
 * Handles `POST /load` and `POST /v1/models/load`: loads a model, compiled first if needed, and answers when it is
 * loaded.
 */
export function load(host: ModelHost) {
  return async (c: AppContext, { model, max_prompt_len }: LoadRequest): Promise<Response> => {
    const id = allowedModel(c, model);
    const report = await host.load(id, max_prompt_len === undefined ? {} : { maxPromptLen: max_prompt_len });
    return c.json<LoadResponse>({ status: 'success', state: 'loaded', ...report });
  };
}

/** Handles `POST /unload`: unloads the loaded model, and answers with its id, or null if there was none. */
export function unload(host: ModelHost): AppHandler {
  return async (c) => {
    await readNothing(c);
    const loaded = host.slot().model;
    if (loaded !== null) checkRight(c, loaded);
    const { model } = await host.unload();
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
    await readNothing(c);
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

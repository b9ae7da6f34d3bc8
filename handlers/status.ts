import type { DeviceDecision, ModelHost, ModelView } from '../lib/models/host.ts';
import { MODEL_STATES } from '../lib/models/model-states.ts';
import { unknownModel } from '../lib/models/unknown-model.ts';
import type {
  Health,
  InferenceModel,
  InferenceServer,
  ModelHealth,
  ModelReadiness,
  Readiness,
  ServerStatus,
  TriedDevice,
} from '../lib/schema/status.ts';
import { VERSION } from '../lib/version.ts';
import type { AppContext, AppHandler, Services } from './context.ts';

/** Handles `GET /`: reports that the server runs, and its active model. */
export function serverStatus(host: ModelHost): AppHandler {
  return (c) =>
    c.json<ServerStatus>({
      status: 'running',
      active_model: activeModel(host.active()),
      description: 'Assay answers many small judgement tasks about one text. GET /openapi.json lists all routes.',
    });
}

/** Returns a handler that sends browsers to the playground, and answers all other clients with `handler`. */
export function browsersToPlayground(handler: AppHandler): AppHandler {
  return (c, next) => {
    c.header('vary', 'accept');
    return c.req.header('accept')?.includes('text/html') ? c.redirect('/playground') : handler(c, next);
  };
}

/** Handles `GET /health` and `GET /currentmodel`: reports the state of the active model. */
export function health(host: ModelHost): AppHandler {
  return (c) => {
    const view = host.active();
    const { device, precision, precisionReason, devices, maxPromptLen, silentMs, dependence } = view;
    const [all, memory] = [host.inMemory(), host.memory()];
    const several = memory !== null || all.length > 1;
    return c.json<Health>({
      ...shown(view),
      device,
      active_model: activeModel(view),
      ...(silentMs === undefined ? {} : { heartbeat_age_ms: Math.round(silentMs) }),
      ...(maxPromptLen === undefined ? {} : { max_prompt_len: maxPromptLen }),
      ...(devices === undefined ? {} : { devices: devices.map(triedDevice) }),
      ...(precision === undefined ? {} : { precision }),
      ...(precisionReason === undefined ? {} : { precision_reason: precisionReason }),
      ...(several ? { models: all.flatMap(modelHealth) } : {}),
      ...(memory
        ? { memory_bytes: Math.round(memory.usedBytes), memory_limit_bytes: Math.round(memory.budgetBytes) }
        : {}),
      ...(dependence === undefined ? {} : { deterministic: dependence === null }),
      ...(typeof dependence === 'string' ? { deterministic_reason: dependence } : {}),
    });
  };
}

/** Describes one of several models; an empty list if there is none. */
function modelHealth(view: ModelView): ModelHealth[] {
  const { model: id, device, memoryBytes } = view;
  if (id === null) return [];
  return [
    {
      id,
      ...shown(view),
      device,
      ...(memoryBytes === undefined ? {} : { memory_bytes: Math.round(memoryBytes) }),
    },
  ];
}

/** Returns the fields that say how a model is. */
function shown(view: ModelView): Pick<ModelHealth, 'state' | 'status' | 'reason'> {
  const { state, health } = MODEL_STATES[view.state];
  const reason = view.unresponsive ? silence(view) : view.reason;
  return { status: view.unresponsive ? 'error' : health, state, ...(reason === undefined ? {} : { reason }) };
}

function silence({ silentMs = 0 }: ModelView): string {
  return `The engine process has not responded for ${Math.round(silentMs / 1000)} s.`;
}

/** Handles `GET /health/live` and `GET /v2/health/live`: the server answers, so it is alive. */
export const live: AppHandler = (c) => c.json({ live: true });

/**
 * Handles `GET /health/ready` and `GET /v2/health/ready`: 200 if a model answers; 503 otherwise, and as soon as the
 * server stops.
 */
export function ready({ host, probed, isStopping }: Services): AppHandler | undefined {
  if (!host) return undefined;
  return (c) => {
    probed?.();
    const reason = isStopping?.() ? 'The server is stopping.' : whyNoneReady(host);
    return reason === null ? c.json<Readiness>({ ready: true }) : c.json<Readiness>({ ready: false, reason }, 503);
  };
}

/** Returns the reason why no model answers; null if one does. */
function whyNoneReady(host: ModelHost): string | null {
  return host.inMemory().some((view) => whyNotReady(view) === null) ? null : whyNotReady(host.active());
}

/** Returns the reason why a model does not answer; null if it does. */
function whyNotReady(view: ModelView): string | null {
  if (view.unresponsive) return silence(view);
  if (view.state === 'loaded') return null;
  return view.reason ?? `No model is loaded (state: ${MODEL_STATES[view.state].state}).`;
}

/** Handles `GET /v2`, the metadata of the Open Inference Protocol. */
export const inferenceServer: AppHandler = (c) =>
  c.json<InferenceServer>({ name: 'assay', version: VERSION, extensions: [] });

/** Handles `GET /v2/models/{model_id}`. Only models in memory have an entry: callers need no key. */
export function inferenceModel({ host }: Services): AppHandler | undefined {
  return (
    host &&
    ((c) => c.json<InferenceModel>({ name: viewOf(c, host).name, platform: 'onnxruntime', inputs: [], outputs: [] }))
  );
}

/** Handles `GET /v2/models/{model_id}/ready`. Throws `model_not_found` for models that are not in memory. */
export function modelReady({ host, isStopping }: Services): AppHandler | undefined {
  if (!host) return undefined;
  return (c) => {
    const { name, view } = viewOf(c, host);
    const ready = !isStopping?.() && whyNotReady(view) === null;
    return c.json<ModelReadiness>({ name, ready }, ready ? 200 : 503);
  };
}

function viewOf(c: AppContext, host: ModelHost): { name: string; view: ModelView } {
  const name = c.req.param('model_id') ?? '';
  const views = host.inMemory();
  const view = views.find(({ model }) => model === name);
  if (view) return { name, view };
  throw unknownModel(name, { served: views.flatMap(({ model }) => model ?? []), known: [] });
}

function triedDevice({ device, used, reason, figures }: DeviceDecision): TriedDevice {
  const { error = null, deviceMs = null, cpuMs = null } = figures ?? {};
  return { device, used, reason, error, device_ms: deviceMs, cpu_ms: cpuMs };
}

function activeModel(view: ModelView): string {
  return view.state === 'loaded' && view.model !== null ? view.model : 'none';
}

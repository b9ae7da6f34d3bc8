import type { DeviceDecision, ModelHost, Slot } from '../lib/host.ts';
import type { Health, ServerStatus, TriedDevice } from '../lib/schema/status.ts';
import type { AppHandler } from './context.ts';

/** Handles `GET /`: reports that the server runs, and its active model. */
export function serverStatus(host: ModelHost): AppHandler {
  return (c) =>
    c.json<ServerStatus>({
      status: 'running',
      active_model: activeModel(host.slot()),
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

const HEALTH: Record<Slot['state'], Health['status']> = {
  unloaded: 'idle',
  loading: 'loading',
  loaded: 'ok',
  unloading: 'loading',
  error: 'error',
};

/** Handles `GET /health` and `GET /currentmodel`: reports the state of the model slot. */
export function health(host: ModelHost): AppHandler {
  return (c) => {
    const slot = host.slot();
    const { state, device, reason, precision, precisionReason, devices } = slot;
    const active_model = activeModel(slot);
    return c.json<Health>({
      status: HEALTH[state],
      state,
      device,
      active_model,
      ...(reason === undefined ? {} : { reason }),
      ...(devices === undefined ? {} : { devices: devices.map(triedDevice) }),
      ...(precision === undefined ? {} : { precision }),
      ...(precisionReason === undefined ? {} : { precision_reason: precisionReason }),
    });
  };
}

function triedDevice({ device, used, reason, figures }: DeviceDecision): TriedDevice {
  const { error = null, deviceMs = null, cpuMs = null } = figures ?? {};
  return { device, used, reason, error, device_ms: deviceMs, cpu_ms: cpuMs };
}

function activeModel(slot: Slot): string {
  return slot.state === 'loaded' && slot.model !== null ? slot.model : 'none';
}

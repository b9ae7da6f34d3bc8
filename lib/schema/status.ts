import * as v from 'valibot';
import { Device } from './metrics.ts';
import { precisionFields } from './precision.ts';
import { count, described, optional, whole } from './values.ts';

/** States of a model in memory, or of the lack of one (docs/model-api.md, M-4). */
const MEMORY_STATES = ['unloaded', 'loading', 'loaded', 'unloading', 'error'] as const;
export const MemoryState = v.picklist(MEMORY_STATES);
export type MemoryState = v.InferOutput<typeof MemoryState>;

const ActiveModel = described(v.string(), 'Id of the model that was loaded last, or none.');

/** Response of `GET /` (docs/model-api.md, M-3). */
export const ServerStatus = v.object({
  status: v.literal('running'),
  active_model: ActiveModel,
  /** One sentence about the server. */
  description: v.string(),
});
export type ServerStatus = v.InferOutput<typeof ServerStatus>;

/** A device that was tried for the loaded model: whether and why it is used, and its measurements beside the CPU's. */
export const TriedDevice = v.object({
  device: Device,
  used: v.boolean(),
  reason: v.string(),
  error: described(
    v.nullable(v.number()),
    "Error of the device's logits: the sum of their differences from the CPU's, divided by the sum of the CPU logits' deviations from their mean. null if not measured, or if a logit is not a number.",
  ),
  device_ms: described(
    v.nullable(v.number()),
    'Milliseconds that the device took for a prompt and one decode step of several branches. null if not measured.',
  ),
  cpu_ms: described(
    v.nullable(v.number()),
    'Milliseconds that the CPU took for the same prompt and step. null if not measured.',
  ),
});
export type TriedDevice = v.InferOutput<typeof TriedDevice>;

const HealthStatus = v.picklist(['ok', 'idle', 'loading', 'error']);

/** One of several models in memory, being loaded, or that failed to load (docs/model-api.md, M-31). */
export const ModelHealth = v.object({
  id: v.string(),
  state: MemoryState,
  status: HealthStatus,
  device: Device,
  reason: v.optional(v.string()),
  memory_bytes: optional(count, 'Memory that the model counts with: what it needs, or more if it took more.'),
});
export type ModelHealth = v.InferOutput<typeof ModelHealth>;

/** Response of `GET /health` and `GET /currentmodel` (docs/model-api.md, M-4). */
export const Health = v.object({
  status: HealthStatus,
  state: MemoryState,
  /** The device in use; if there is no model, the one that it would use. */
  device: Device,
  active_model: ActiveModel,
  reason: optional(v.string(), 'Reason for the state error, or for the status error.'),
  heartbeat_age_ms: optional(
    count,
    'Milliseconds since the engine process last reported, which it does twice a second. Absent without such a process. If it stays silent for four seconds although it could run, status is error.',
  ),
  max_prompt_len: optional(
    whole(1),
    'Maximum tokens of one prompt of the loaded model. Chosen at the load if the load did not ask for one.',
  ),
  ...precisionFields,
  deterministic: optional(
    v.boolean(),
    'Whether answers to tasks at temperature 0 are the same in every bit alone and beside other tasks and requests.',
  ),
  deterministic_reason: optional(v.string(), 'Why they may not be.'),
  devices: optional(v.array(TriedDevice), 'Devices other than the CPU that were tried.'),
  models: optional(
    v.array(ModelHealth),
    'All models in memory, the one that was loaded last first; only on a server that holds several.',
  ),
  memory_bytes: optional(count, 'Memory that these models count with together.'),
  memory_limit_bytes: optional(count, 'Memory that they may have (assay serve --memory).'),
});
export type Health = v.InferOutput<typeof Health>;

/** Response of `GET /health/live` and `GET /v2/health/live` (docs/model-api.md, M-28). */
export const Liveness = v.object({ live: v.literal(true) });

/** Response of `GET /health/ready` and `GET /v2/health/ready`, with status 200 or 503 (docs/model-api.md, M-28). */
export const Readiness = v.object({
  ready: described(v.boolean(), 'True if a model answers and the server is not stopping.'),
  reason: optional(v.string(), 'Why the server is not ready.'),
});
export type Readiness = v.InferOutput<typeof Readiness>;

/** Response of `GET /v2` (docs/model-api.md, M-28). */
export const InferenceServer = v.object({ name: v.string(), version: v.string(), extensions: v.array(v.string()) });
export type InferenceServer = v.InferOutput<typeof InferenceServer>;

/** Response of `GET /v2/models/{model_id}` (docs/model-api.md, M-28). */
export const InferenceModel = v.object({
  name: v.string(),
  platform: v.string(),
  inputs: described(v.pipe(v.array(v.unknown()), v.maxLength(0)), 'Empty: the model is asked by the other routes.'),
  outputs: v.pipe(v.array(v.unknown()), v.maxLength(0)),
});
export type InferenceModel = v.InferOutput<typeof InferenceModel>;

/** Response of `GET /v2/models/{model_id}/ready`, with status 200 or 503 (docs/model-api.md, M-28). */
export const ModelReadiness = v.object({ name: v.string(), ready: v.boolean() });
export type ModelReadiness = v.InferOutput<typeof ModelReadiness>;

/**
 * Response of `GET /health` and `GET /currentmodel` on an edge, which describes all upstreams together
 * (docs/interface.md, E-2).
 */
export const EdgeHealth = v.object({
  /** `degraded`: requests are sent to only some of the upstreams; `error`: to none. */
  status: v.picklist(['ok', 'degraded', 'error']),
  state: described(
    v.picklist(['loaded', 'unloaded', 'error']),
    'loaded if any box answers requests, error if none can be reached.',
  ),
  device: described(v.nullable(Device), 'Device of most boxes; null until a box has reported it.'),
  active_model: described(v.string(), 'Id of the model that most boxes have loaded, or none.'),
  boxes: described(count, 'Number of boxes behind the edge.'),
});
export type EdgeHealth = v.InferOutput<typeof EdgeHealth>;

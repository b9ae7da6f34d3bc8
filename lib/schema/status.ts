import * as v from 'valibot';
import { Device } from './metrics.ts';
import { WeightForm } from './weight-form.ts';

/** States of the one slot for a model (open-points.md, part B). */
export const SLOT_STATES = ['unloaded', 'loading', 'loaded', 'unloading', 'error'] as const;
export const SlotState = v.picklist(SLOT_STATES);
export type SlotState = v.InferOutput<typeof SlotState>;

const ActiveModel = v.pipe(v.string(), v.description('The loaded model, or none.'));

/** `GET /` (model-server.md, "Server status"). */
export const ServerStatus = v.object({
  status: v.literal('running'),
  active_model: ActiveModel,
  /** For people. */
  description: v.string(),
});
export type ServerStatus = v.InferOutput<typeof ServerStatus>;

/** `GET /health`, `GET /currentmodel` (model-server.md, "Health"). */
export const Health = v.object({
  status: v.picklist(['ok', 'idle', 'loading', 'error']),
  state: SlotState,
  /** The one that really runs; for an empty slot the one that would be used. */
  device: Device,
  active_model: ActiveModel,
  /** Why the slot is in `error`. */
  reason: v.optional(v.string()),
  precision: v.optional(v.pipe(WeightForm, v.description("The form of the loaded model's weights."))),
  precision_reason: v.optional(v.pipe(v.string(), v.description('Why the weights are in this form.'))),
});
export type Health = v.InferOutput<typeof Health>;

/** `GET /health`, `GET /currentmodel` of an edge: the boxes behind it, each with a slot and a device of its own. */
export const EdgeHealth = v.object({
  /** `degraded`: some boxes are not asked; `error`: none is. */
  status: v.picklist(['ok', 'degraded', 'error']),
  active_model: ActiveModel,
});
export type EdgeHealth = v.InferOutput<typeof EdgeHealth>;

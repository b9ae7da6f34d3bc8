import * as v from 'valibot';
import { MelPlan } from './audio/mel-plan.ts';
import { PixelPlan } from './pixel-plan.ts';

/*
 * The messages between the server and the media process, which decodes files of strangers. It has one request at a
 * time.
 */

const Id = v.pipe(v.number(), v.integer(), v.minValue(0));
/** The hash of the bytes, by which the process knows a recording that it has decoded. */
const Sha256 = v.pipe(v.string(), v.length(64));
const Bytes = v.custom<Uint8Array>((value) => value instanceof Uint8Array);
const Side = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000));

export const ToMedia = v.variant('type', [
  /** Asks for the size of an image, from its headers. */
  v.object({ type: v.literal('size'), id: Id, bytes: Bytes }),
  /** Asks for the tiles of an image. */
  v.object({ type: v.literal('pixels'), id: Id, bytes: Bytes, plan: PixelPlan }),
  /** Asks for the length of a recording, decoded. */
  v.object({ type: v.literal('length'), id: Id, sha256: Sha256, bytes: Bytes }),
  /** Asks for its log-mel values. */
  v.object({ type: v.literal('mel'), id: Id, sha256: Sha256, bytes: Bytes, plan: MelPlan }),
]);
export type ToMedia = v.InferOutput<typeof ToMedia>;

export const FromMedia = v.variant('type', [
  v.object({ type: v.literal('size'), id: Id, width: Side, height: Side }),
  v.object({ type: v.literal('pixels'), id: Id, data: Bytes }),
  /** In samples at 16 kHz. */
  v.object({ type: v.literal('length'), id: Id, samples: v.pipe(v.number(), v.integer(), v.minValue(1)) }),
  /** Floats of 32 bits. */
  v.object({ type: v.literal('mel'), id: Id, data: Bytes }),
  /** `too_large`: more pixels or samples than are decoded. `detail` is for the log. */
  v.object({
    type: v.literal('failed'),
    id: Id,
    fault: v.picklist(['undecodable', 'too_large']),
    detail: v.pipe(v.string(), v.maxLength(4000)),
  }),
]);
export type FromMedia = v.InferOutput<typeof FromMedia>;

import * as v from 'valibot';
import type { DocumentFormat } from './document-text.ts';
import type { MelPlan } from './media-plan.ts';
import type { PixelPlan } from './pixel-plan.ts';

/**
 * Messages between the server and the media process, which decodes untrusted files. The server sends one request at a
 * time, and validates each answer.
 */

const Id = v.pipe(v.number(), v.integer(), v.minValue(0));
const Bytes = v.custom<Uint8Array>((value) => value instanceof Uint8Array);
const Side = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000));

/**
 * Lists the messages to the media process. They ask for the size of an image, which its headers state; for its tiles;
 * for the length of a recording, which is not decoded if it has more samples at 16 kHz than `mostSamples`; for its
 * log-mel values; and for the text of a document. `sha256` identifies a recording that the process has already decoded.
 */
export type ToMedia = { id: number; bytes: Uint8Array } & (
  | { type: 'size' }
  | { type: 'pixels'; plan: PixelPlan }
  | { type: 'length'; sha256: string; mostSamples?: number }
  | { type: 'mel'; sha256: string; plan: MelPlan }
  | { type: 'text'; format: DocumentFormat }
);

export const FromMedia = v.variant('type', [
  v.object({ type: v.literal('size'), id: Id, width: Side, height: Side }),
  v.object({ type: v.literal('pixels'), id: Id, data: Bytes }),
  /** Length of a recording, in samples at 16 kHz. */
  v.object({ type: v.literal('length'), id: Id, samples: v.pipe(v.number(), v.integer(), v.minValue(1)) }),
  /** Log-mel values of a recording, as bytes of 32-bit floats. */
  v.object({ type: v.literal('mel'), id: Id, data: Bytes }),
  v.object({ type: v.literal('text'), id: Id, text: v.string() }),
  /** The file was not decoded, for the reason of an `AudioFault`; `too_large` is an image's only other reason. */
  v.object({
    type: v.literal('failed'),
    id: Id,
    fault: v.picklist(['undecodable', 'encoding', 'too_large', 'too_long', 'too_many_samples']),
    detail: v.pipe(v.string(), v.maxLength(4000)),
  }),
]);
export type FromMedia = v.InferOutput<typeof FromMedia>;

import * as v from 'valibot';
import { DOCUMENT_FORMATS } from './document-text.ts';
import { MelPlan } from './media-plan.ts';
import { PixelPlan } from './pixel-plan.ts';

/**
 * Messages between the server and the media process, which decodes untrusted files. The server sends one request at a
 * time.
 */

const Id = v.pipe(v.number(), v.integer(), v.minValue(0));
/** Hash of the file's bytes, in hexadecimal. It identifies a recording that the process has already decoded. */
const Sha256 = v.pipe(v.string(), v.length(64));
const Bytes = v.custom<Uint8Array>((value) => value instanceof Uint8Array);
const Side = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000));

export const ToMedia = v.variant('type', [
  /** Asks for the size of an image, which its headers state. */
  v.object({ type: v.literal('size'), id: Id, bytes: Bytes }),
  /** Asks for the tiles of an image. */
  v.object({ type: v.literal('pixels'), id: Id, bytes: Bytes, plan: PixelPlan }),
  /** Asks for the length of a recording after decoding. It is not decoded if it has more samples at 16 kHz. */
  v.object({ type: v.literal('length'), id: Id, sha256: Sha256, bytes: Bytes, mostSamples: v.exactOptional(Id) }),
  /** Asks for the log-mel values of a recording. */
  v.object({ type: v.literal('mel'), id: Id, sha256: Sha256, bytes: Bytes, plan: MelPlan }),
  /** Asks for the text of a document. */
  v.object({ type: v.literal('text'), id: Id, bytes: Bytes, format: v.picklist(DOCUMENT_FORMATS) }),
]);
export type ToMedia = v.InferOutput<typeof ToMedia>;

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

import * as v from 'valibot';
import { MOST_CALLS } from '../schema/chat-tools.ts';
import { count } from '../schema/values.ts';
import { strictObject, variant } from '../validation/objects.ts';

/*
 * Values of the contract between handlers, edge and engine process. The bounds are at least those of the API
 * (docs/interface.md, D-6), because they check another part of Assay, not the user.
 */

/** A text of a request or an answer, at most 20 Mi characters: a request body has at most 20 MiB. */
export const text = v.pipe(v.string(), v.maxLength(20 * 1024 * 1024));
export const short = v.pipe(v.string(), v.maxLength(4096));
export const real = v.pipe(v.number(), v.finite());

/** Returns the schema of a list of at most `most` items. */
export function list<TSchema extends v.GenericSchema>(item: TSchema, most = 1024 * 1024) {
  return v.pipe(v.array(item), v.maxLength(most), v.readonly());
}

/** Kinds of media that a model can read besides text. */
export const MEDIA_KINDS = ['image', 'audio'] as const;
export type MediaKind = (typeof MEDIA_KINDS)[number];

/** SHA-256 of a file's bytes, lower-case hex. */
export const Sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/u));
const Pixels = v.pipe(count, v.minValue(1), v.maxValue(1_000_000));

/** Describes an image file that a backend has read. */
const OpenedImage = strictObject({ sha256: Sha256, width: Pixels, height: Pixels });

/** Describes an audio file that a backend has read, with its length in samples at 16 kHz. */
const OpenedAudio = strictObject({ sha256: Sha256, samples: v.pipe(count, v.minValue(1), v.maxValue(10_000_000)) });

export const MediaPart = strictObject({
  type: v.picklist(MEDIA_KINDS),
  source: variant('type', [
    strictObject({ type: v.literal('url'), url: text }),
    strictObject({ type: v.literal('base64'), data: text, mimeType: text }),
  ]),
  /** Hash and size of the file; present once a backend has read it. The strings in `source` are then empty. */
  opened: v.exactOptional(v.union([OpenedImage, OpenedAudio])),
  detail: v.exactOptional(v.picklist(['low', 'high', 'auto'])),
  /** Path of the part in the request, for errors: `images[0]`, `messages[1].content[0]`. */
  param: text,
});
export type MediaPart = v.InferOutput<typeof MediaPart>;

const Part = v.union([strictObject({ type: v.literal('text'), text }), MediaPart]);
export type Part = v.InferOutput<typeof Part>;

const ToolCall = strictObject({
  id: short,
  name: short,
  /** The arguments as the JSON text of an object. */
  arguments: short,
});
export type ToolCall = v.InferOutput<typeof ToolCall>;

/**
 * Describes a message as backends receive it: its content is split into parts, and the role `developer` has been
 * replaced by `system`.
 */
export const ChatMessage = strictObject({
  role: v.picklist(['system', 'user', 'assistant', 'tool']),
  /** Text and media in the order sent. */
  parts: list(Part),
  name: v.exactOptional(text),
  /** Tool calls that an assistant's message makes; absent rather than empty. */
  toolCalls: v.exactOptional(list(ToolCall, MOST_CALLS)),
  /** For the role `tool`: id of the earlier tool call that this message answers. */
  toolCallId: v.exactOptional(short),
});
export type ChatMessage = v.InferOutput<typeof ChatMessage>;

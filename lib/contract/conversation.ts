/**
 * Describes a message as backends receive it: its content is split into parts, and the role `developer` has been
 * replaced by `system`.
 */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** Text and media in the order sent. */
  parts: readonly Part[];
  name?: string;
  /** Tool calls that an assistant's message makes; absent rather than empty. */
  toolCalls?: readonly ToolCall[];
  /** For the role `tool`: id of the earlier tool call that this message answers. */
  toolCallId?: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** The arguments as the JSON text of an object. */
  arguments: string;
}

export type Part = { type: 'text'; text: string } | MediaPart;

/** Kinds of media that a model can read besides text. */
export const MEDIA_KINDS = ['image', 'audio'] as const;
export type MediaKind = (typeof MEDIA_KINDS)[number];

export interface MediaPart {
  type: MediaKind;
  source: { type: 'url'; url: string } | { type: 'base64'; data: string; mimeType: string };
  /** Hash and size of the file; present once a backend has read it. The strings in `source` are then empty. */
  opened?: OpenedImage | OpenedAudio;
  detail?: 'low' | 'high' | 'auto';
  /** Path of the part in the request, for errors: `images[0]`, `messages[1].content[0]`. */
  param: string;
}

/** Describes an image file that a backend has read. */
export interface OpenedImage {
  /** SHA-256 of the file's bytes, lower-case hex. */
  sha256: string;
  /** Width in pixels. */
  width: number;
  /** Height in pixels. */
  height: number;
}

/** Describes an audio file that a backend has read. */
export interface OpenedAudio {
  /** SHA-256 of the file's bytes, lower-case hex. */
  sha256: string;
  /** Length in samples at 16 kHz. */
  samples: number;
}

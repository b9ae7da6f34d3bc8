/**
 * Describes a message of a conversation as backends read it: aliases resolved, `developer` turned into `system`, texts
 * joined in order.
 */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** Text and media in the order sent. */
  parts: readonly Part[];
  name?: string;
  /** Calls of tools that an assistant's message makes; never empty. */
  toolCalls?: readonly ToolCall[];
  /** The call that a message with the role `tool` answers: the id of an earlier one. */
  toolCallId?: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** The JSON text of an object. */
  arguments: string;
}

export type Part = { type: 'text'; text: string } | MediaPart;

export interface MediaPart {
  type: 'image' | 'audio';
  source: { type: 'url'; url: string } | { type: 'base64'; data: string; mimeType: string };
  /** Facts about the file, where a backend has read them; `source` is then empty. */
  opened?: OpenedImage | OpenedAudio;
  detail?: 'low' | 'high' | 'auto';
  /** Its path in the request, for the errors about it: `images[0]`, `messages[1].content[0]`. */
  param: string;
}

export interface OpenedImage {
  sha256: string;
  width: number;
  height: number;
}

export interface OpenedAudio {
  sha256: string;
  /** Samples at 16 kHz. */
  samples: number;
}

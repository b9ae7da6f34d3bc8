/**
 * Describes a message of a conversation as backends read it: aliases resolved, `developer` turned into `system`, texts
 * joined in order.
 */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  /** Text and media in the order sent. */
  parts: readonly Part[];
  name?: string;
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

import type { ChatMessage, MediaKind, MediaPart, Part } from '../contract/conversation.ts';
import type { ContentPart, MediaInput, Message } from '../schema/message.ts';

/** Converts the messages of a request: `developer` becomes `system`, and a string becomes one text part. */
export function toChatMessages(messages: readonly Message[]): ChatMessage[] {
  return messages.map(({ role, content, name }, i) => {
    const parts: Part[] =
      typeof content === 'string'
        ? [{ type: 'text', text: content }]
        : content.map((part, j) => partOf(part, `messages[${i}].content[${j}]`));
    const message: ChatMessage = { role: role === 'developer' ? 'system' : role, parts };
    if (name !== undefined) message.name = name;
    return message;
  });
}

/** Returns a message with one text part. */
export function textMessage(role: ChatMessage['role'], text: string): ChatMessage {
  return { role, parts: [{ type: 'text', text }] };
}

/** Converts the members `images` and `audio` of a request to parts, first the images. */
export function mediaOf(images: readonly MediaInput[] = [], audio: readonly MediaInput[] = []): MediaPart[] {
  return [
    ...images.map((image, i) => mediaPart('image', image, `images[${i}]`)),
    ...audio.map((sound, i) => mediaPart('audio', sound, `audio[${i}]`)),
  ];
}

function partOf(part: ContentPart, param: string): Part {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image_url': {
      const { url, detail } = part.image_url;
      const image: MediaPart = { type: 'image', source: { type: 'url', url }, param };
      if (detail !== undefined) image.detail = detail;
      return image;
    }
    case 'image':
      return mediaPart('image', part.image, param);
    case 'audio':
      return mediaPart('audio', part.audio, param);
    case 'input_audio':
      return { type: 'audio', source: audioSource(part.input_audio), param };
  }
}

/**
 * Converts one media input. Validation has ensured that the members which its type requires are present
 * (`lib/schema/message.ts`).
 */
function mediaPart(type: MediaKind, { url, data, mime_type }: MediaInput, param: string): MediaPart {
  const source: MediaPart['source'] =
    url !== undefined ? { type: 'url', url } : { type: 'base64', data: data!, mimeType: mime_type! };
  return { type, source, param };
}

/**
 * Converts OpenAI's `input_audio` to a media source. Its `format` is usually `wav` or `mp3`; `mp3` means the MIME type
 * `audio/mpeg` (RFC 3003).
 */
export function audioSource({ data, format }: { data: string; format: string }): MediaPart['source'] {
  return { type: 'base64', data, mimeType: `audio/${format === 'mp3' ? 'mpeg' : format}` };
}

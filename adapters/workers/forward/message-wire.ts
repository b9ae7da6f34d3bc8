import type { ChatMessage, MediaPart, Part } from '../../../lib/contract/conversation.ts';
import { dataUrlOf } from '../../../lib/data-url.ts';

/**
 * Returns a message in the form of `messages` of `POST /v1/chat/completions` and `POST /v1/tasks`. Parts keep their
 * order, so the indices in the paths of an upstream's errors are those of the caller's messages and parts.
 */
export function message({ role, parts, name, toolCalls, toolCallId }: ChatMessage): object {
  const [first] = parts;
  const content =
    parts.length === 0 ? null : parts.length === 1 && first?.type === 'text' ? first.text : parts.map(part);
  const tool_calls = toolCalls?.map(({ id, ...call }) => ({ id, type: 'function', function: call }));
  return { role, content, name, tool_calls, tool_call_id: toolCallId };
}

function part(part: Part): object {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.detail === undefined) return { type: part.type, [part.type]: media(part) };
  const { source } = part;
  const url = source.type === 'url' ? source.url : dataUrlOf(source);
  return { type: 'image_url', image_url: { url, detail: part.detail } };
}

/** Returns an image as an ImageInput, or a recording as an AudioInput, of a request (docs/interface.md, D-9). */
export function media({ source }: MediaPart): object {
  return source.type === 'url'
    ? { type: 'url', url: source.url }
    : { type: 'base64', data: source.data, mime_type: source.mimeType };
}

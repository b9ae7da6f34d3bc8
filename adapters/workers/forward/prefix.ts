import type { ChatRequest, TaskBatch } from '../../../lib/backend.ts';
import type { ChatMessage, Part } from '../../../lib/conversation.ts';

/**
 * Separates the parts of a prefix. Parts that contain it can make two prefixes equal; such requests then go to the same
 * upstream, which does no harm.
 */
const SEPARATOR = '\0';

/** Characters in each sample of a long text. */
const PIECE = 128;
/** Number of samples of a long text, evenly spaced from its beginning to its end. */
const PIECES = 32;

/**
 * Returns the text by whose hash an upstream is chosen. Requests with the same text go to the same upstream, whose
 * prefix cache then contains the beginning of the prompt. If a request has images or audio, only these count, because
 * they come first in the prompt and are expensive to encode.
 */
export function taskPrefix({ model, input, media }: TaskBatch): string {
  const shared: Part[] = 'context' in input ? [{ type: 'text', text: input.context }] : opening(input.messages);
  return prefixText(model, [...media, ...shared]);
}

/**
 * Returns the text by whose hash an upstream is chosen for a chat, as `taskPrefix` does for tasks. Without a model, the
 * upstream's active one answers.
 */
export function chatPrefix({ model, messages }: ChatRequest): string {
  return prefixText(model ?? '', opening(messages));
}

function prefixText(model: string, parts: readonly Part[]): string {
  const media = parts.filter(({ type }) => type !== 'text');
  const shared = media.length > 0 ? media : parts;
  return [model, ...shared.map(partText).map(sampled)].join(SEPARATOR);
}

/**
 * Returns samples of a long text, so that hashing it costs the same however long it is. Texts that differ only between
 * the samples go to the same upstream.
 */
function sampled(text: string): string {
  if (text.length <= PIECE * PIECES) return text;
  const step = (text.length - PIECE) / (PIECES - 1);
  const pieces = Array.from({ length: PIECES }, (_, i) =>
    text.slice(Math.floor(i * step), Math.floor(i * step) + PIECE),
  );
  return `${text.length} ${pieces.join('')}`;
}

/**
 * Returns the instructions and the first user message. They do not change when a conversation grows, so it stays on its
 * upstream.
 */
function opening(messages: readonly ChatMessage[]): Part[] {
  const first = messages.findIndex(({ role }) => role === 'user');
  const own = messages.filter(({ role }, i) => role === 'system' || i === first);
  return own.flatMap(({ role, parts }) => [{ type: 'text' as const, text: role }, ...parts]);
}

function partText(part: Part): string {
  if (part.type === 'text') return part.text;
  return part.source.type === 'url' ? part.source.url : part.source.data;
}

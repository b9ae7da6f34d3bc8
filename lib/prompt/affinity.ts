import type { ChatRequest, TaskBatch } from '../backend.ts';
import type { ChatMessage, Part } from '../contract/conversation.ts';
import { splitDataUrl } from '../data-url.ts';

/** Holds a 64-bit hash as two unsigned 32-bit numbers. */
export type Hash64 = readonly [number, number];

/** Name of the response header with `contextHash` (docs/interface.md, D-36). */
export const CONTEXT_HEADER = 'assay-context-hash';

/** Name of the request header that says which requests should reach the same box (docs/interface.md, D-36). */
export const SESSION_HEADER = 'x-session-id';

/**
 * Separates the parts of a prefix. If a part itself contains this character, two different prefixes may become equal.
 * That is harmless: their requests go to the same upstream.
 */
const SEPARATOR = '\0';

/** Characters in each sample of a long text. */
const SAMPLE_LENGTH = 128;
/** Number of samples of a long text, evenly spaced from its beginning to its end. */
const SAMPLES = 32;

/**
 * Returns the text whose hash selects an upstream for a batch of tasks. Batches with the same text go to the same
 * upstream, which has the beginning of the prompt in its prefix cache. If a batch has images or audio, the text is made
 * of them alone, because they come first in the prompt and are expensive to encode.
 */
export function taskPrefix({ model, input, media }: TaskBatch): string {
  const shared: Part[] = 'context' in input ? [{ type: 'text', text: input.context }] : opening(input.messages);
  return prefixText(model ?? '', [...media, ...shared]);
}

/**
 * Returns the text whose hash selects an upstream for a chat, as `taskPrefix` does for tasks. A chat that names no
 * model is answered by the model that the upstream has loaded.
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
 * Returns the length and `SAMPLES` samples of a long text, which limits the cost of hashing; a text of at most 4,096
 * characters unchanged. Texts of equal length that differ only between the samples go to the same upstream.
 */
function sampled(text: string): string {
  if (text.length <= SAMPLE_LENGTH * SAMPLES) return text;
  const step = (text.length - SAMPLE_LENGTH) / (SAMPLES - 1);
  const samples = Array.from({ length: SAMPLES }, (_, i) =>
    text.slice(Math.floor(i * step), Math.floor(i * step) + SAMPLE_LENGTH),
  );
  return `${text.length} ${samples.join('')}`;
}

/**
 * Returns the parts of the system messages and of the first user message, each message's after its role as text. They
 * stay the same while a conversation grows, so the whole conversation goes to one upstream.
 */
function opening(messages: readonly ChatMessage[]): Part[] {
  const first = messages.findIndex(({ role }) => role === 'user');
  const own = messages.filter(({ role }, i) => role === 'system' || i === first);
  return own.flatMap(({ role, parts }) => [{ type: 'text' as const, text: role }, ...parts]);
}

/** Returns the text of a text part, the base64 of a file that was sent as base64 or as a data: URL, or another URL. */
function partText(part: Part): string {
  if (part.type === 'text') return part.text;
  return part.source.type === 'url' ? (splitDataUrl(part.source.url)?.data ?? part.source.url) : part.source.data;
}

/**
 * Returns a 64-bit hash of a text. It spreads texts evenly, but whoever wants equal hashes can make them: that brings
 * requests to one box, which `x-session-id` does, too. A cryptographic hash would take longer than all other work on a
 * small request.
 */
export function hash64(text: string): Hash64 {
  let [one, other] = [0x9e3779b9, 0x85ebca6b];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    one = Math.imul(((one << 5) | (one >>> 27)) ^ code, 0x9e3779b1);
    other = Math.imul(((other << 11) | (other >>> 21)) ^ code, 0x85ebca77);
  }
  return [mixed(one ^ text.length, other), mixed(other ^ text.length, one)];
}

/** Returns 32 bits that each depend on all bits of two halves (the last step of MurmurHash3). */
function mixed(one: number, other: number): number {
  let half = one + Math.imul(other ^ (other >>> 15), 0xc2b2ae3d);
  half = Math.imul(half ^ (half >>> 16), 0x85ebca6b);
  half = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return (half ^ (half >>> 16)) >>> 0;
}

/**
 * Returns the hash of what a request shares with others, whichever model it names, as 16 hex digits: requests with
 * equal ones gain from the same box.
 */
export function contextHash(request: TaskBatch | ChatRequest): string {
  const { model: _, ...unnamed } = request;
  const hash = hash64('tasks' in unnamed ? taskPrefix(unnamed) : chatPrefix(unnamed));
  return hash.map((half) => half.toString(16).padStart(8, '0')).join('');
}

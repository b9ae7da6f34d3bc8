import type { ChatRequest, TaskBatch } from '../../../lib/backend.ts';
import type { Turn } from '../../../lib/conversation.ts';

/** What requests must share to be sent to the same box: its prefix cache then holds the beginning of the prompt. */
export function taskPrefix({ model, input, media }: TaskBatch): string {
  const shared = 'context' in input ? input.context : opening(input.turns);
  return JSON.stringify([model, shared, media.map(({ source }) => source)]);
}

/** As `taskPrefix`, for a chat. Without a model the box's active one answers. */
export function chatPrefix({ model, turns }: ChatRequest): string {
  return JSON.stringify([model ?? null, opening(turns), []]);
}

/** Instructions and the first user turn: they stay when a conversation grows, so it stays on its box. */
function opening(turns: readonly Turn[]): unknown[] {
  const first = turns.findIndex(({ role }) => role === 'user');
  const own = turns.filter(({ role }, i) => role === 'system' || i === first);
  return own.map(({ role, parts }) => [role, parts.map((part) => (part.type === 'text' ? part.text : part.source))]);
}

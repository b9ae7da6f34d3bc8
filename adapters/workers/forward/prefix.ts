import type { ChatRequest, TaskBatch } from '../../../lib/backend.ts';
import type { Part, Turn } from '../../../lib/conversation.ts';

/** Between the parts; two requests that only differ around one may share a box, which does no harm. */
const SEPARATOR = '\0';

/** What requests must share to be sent to the same box: its prefix cache then holds the beginning of the prompt. */
export function taskPrefix({ model, input, media }: TaskBatch): string {
  const shared = 'context' in input ? [input.context] : opening(input.turns);
  return [model, ...shared, ...media.map(partText)].join(SEPARATOR);
}

/** As `taskPrefix`, for a chat. Without a model the box's active one answers. */
export function chatPrefix({ model, turns }: ChatRequest): string {
  return [model ?? '', ...opening(turns)].join(SEPARATOR);
}

/** Instructions and the first user turn: they stay when a conversation grows, so it stays on its box. */
function opening(turns: readonly Turn[]): string[] {
  const first = turns.findIndex(({ role }) => role === 'user');
  const own = turns.filter(({ role }, i) => role === 'system' || i === first);
  return own.flatMap(({ role, parts }) => [role, ...parts.map(partText)]);
}

function partText(part: Part): string {
  if (part.type === 'text') return part.text;
  return part.source.type === 'url' ? part.source.url : part.source.data;
}

/** Server-sent events as text (HTML Living Standard, "Server-sent events"): one event with JSON data. */
export function sseData(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** The last event of a chat stream. */
export const SSE_DONE = 'data: [DONE]\n\n';

/** A comment, which clients skip: keeps an idle connection open, and finds out whether anyone is still there. */
export const SSE_COMMENT = ': keep-alive\n\n';

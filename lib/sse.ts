/** Formats a server-sent event without a name (HTML Living Standard, "Server-sent events"); `value` is sent as JSON. */
export function sseData(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** Formats a server-sent event with a name; `value` is sent as JSON. */
export function sseEvent(name: string, value: unknown): string {
  return `event: ${name}\n${sseData(value)}`;
}

/** The last event of a stream of Chat Completions. */
export const SSE_DONE = 'data: [DONE]\n\n';

/**
 * An SSE comment, which clients ignore. It keeps an idle connection open, and detects a client that has disconnected.
 */
export const SSE_COMMENT = ': keep-alive\n\n';

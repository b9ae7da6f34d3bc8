/** Formats one server-sent event with JSON data (HTML Living Standard, "Server-sent events"). */
export function sseData(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** Formats one server-sent event with a name and JSON data. */
export function sseEvent(name: string, value: unknown): string {
  return `event: ${name}\n${sseData(value)}`;
}

/** The last event of a chat stream. */
export const SSE_DONE = 'data: [DONE]\n\n';

/**
 * An SSE comment, which clients ignore. It keeps an idle connection open, and detects a client that has disconnected.
 */
export const SSE_COMMENT = ': keep-alive\n\n';

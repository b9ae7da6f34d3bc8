/** Describes the position of one request in a distributed trace (W3C Trace Context, level 1). */
export interface TraceContext {
  /** Id of the trace: 32 lower-case hex digits. */
  traceId: string;
  /** Id of this server's span: 16 lower-case hex digits. */
  spanId: string;
  /** Id of the caller's span: 16 lower-case hex digits; absent if the trace begins in this server. */
  parentId?: string;
  /** Trace flags: two hex digits, whose lowest bit (`sampled`) says whether the trace is recorded. */
  flags: string;
  /** The header `tracestate` (entries of tracing systems), passed on unchanged. */
  state?: string;
}

const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/**
 * Maximum length in characters of a `tracestate` that is passed on; a longer header is dropped. By W3C Trace Context
 * ("tracestate Limits"), vendors should propagate at least 512 characters.
 */
const MOST_STATE = 512;

/**
 * Reads the headers `traceparent` and `tracestate`, and gives this server a new span in that trace. Returns null if
 * there is no valid `traceparent`; the specification requires that an invalid one is ignored.
 *
 * @param newSpanId returns 16 random lower-case hex digits
 */
export function traceContext(headers: Pick<Headers, 'get'>, newSpanId: () => string): TraceContext | null {
  const match = TRACEPARENT.exec(headers.get('traceparent')?.trim() ?? '');
  if (!match) return null;
  const [, version, traceId, parentId, flags, more] = match;
  // Version 00 has exactly four fields; only later versions may have more.
  if (version === '00' && more !== undefined) return null;
  const state = headers.get('tracestate');
  const kept = state !== null && state.length <= MOST_STATE ? { state } : {};
  return { traceId: traceId!, spanId: newSpanId(), parentId: parentId!, flags: flags!, ...kept };
}

/**
 * Starts a new trace with this request's span as its root. Its flags say that it is recorded.
 *
 * @param newSpanId returns 16 random lower-case hex digits
 */
export function newTrace(newSpanId: () => string): TraceContext {
  return { traceId: newSpanId() + newSpanId(), spanId: newSpanId(), flags: '01' };
}

/**
 * Returns the headers `traceparent` and `tracestate` of a request to an upstream, for which this server's span is the
 * parent. Of the flags, only `sampled` is passed on.
 */
export function traceHeaders({ traceId, spanId, flags, state }: TraceContext): Record<string, string> {
  const sampled = Number.parseInt(flags, 16) & 1;
  return {
    traceparent: `00-${traceId}-${spanId}-0${sampled}`,
    ...(state === undefined ? {} : { tracestate: state }),
  };
}

/** Returns 16 random lower-case hex digits. */
export function randomSpanId(): string {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

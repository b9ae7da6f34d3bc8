import type { Metrics, Usage } from '../../../lib/backend.ts';
import type { Outcome } from '../upstreams/fleet.ts';

/** Holds the log record of one attempt: one request sent to one upstream. */
export interface AttemptRecord {
  requestId: string;
  kind: 'tasks' | 'chat';
  upstream: string;
  outcome: Outcome;
  /** Milliseconds from sending the request to the end of the attempt. */
  ms: number;
  usage?: Usage;
  metrics?: Metrics;
  /** Error that ended the attempt; absent if there was none. */
  error?: unknown;
}

export type AttemptLog = (record: AttemptRecord) => void;

import type { Metrics, Usage } from '../../../lib/backend.ts';
import type { Outcome } from '../upstreams/fleet.ts';

/** One request at one upstream, as it is logged. */
export interface AttemptRecord {
  requestId: string;
  kind: 'tasks' | 'chat';
  upstream: string;
  outcome: Outcome;
  /** Milliseconds from sending the request to the end of the answer. */
  ms: number;
  usage?: Usage;
  metrics?: Metrics;
  error?: unknown;
}

export type AttemptLog = (record: AttemptRecord) => void;

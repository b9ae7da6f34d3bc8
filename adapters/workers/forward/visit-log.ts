import type { Metrics, Usage } from '../../../lib/backend.ts';
import type { Outcome } from '../boxes/fleet.ts';

/** One request at one box, as it is logged. */
export interface VisitRecord {
  requestId: string;
  kind: 'tasks' | 'chat';
  box: string;
  outcome: Outcome;
  /** Milliseconds from sending the request to the end of the answer. */
  ms: number;
  usage?: Usage;
  metrics?: Metrics;
  error?: unknown;
}

export type VisitLog = (record: VisitRecord) => void;

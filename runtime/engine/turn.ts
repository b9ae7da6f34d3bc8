import type { Job, JobResult } from './job.ts';
import type { JobRun, Plan } from './job-run.ts';

/** Describes a job that waits or runs, and the promise that answers it. */
export interface Entry {
  job: Job;
  resolve(result: JobResult): void;
  reject(error: unknown): void;
  signal: AbortSignal | undefined;
  queuedAt: number;
  startedAt: number;
  /** Time of the first row of logits. */
  promptDoneAt: number | null;
}

/** Describes a job that holds a sequence. */
export interface Turn {
  entry: Entry;
  run: JobRun;
}

/** Describes one job's part of a run of the model. */
export interface PlannedTurn {
  turn: Turn;
  plan: Plan;
  newTokens: number;
}

/** Tells whether a job gives way to interactive ones. */
export function isBatch({ job }: Entry): boolean {
  return job.priority === 'batch';
}

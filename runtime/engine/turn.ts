import type { Job, JobResult } from './job.ts';
import type { JobRun } from './job-run.ts';
import type { Plan } from './plan.ts';

/** Holds a job that waits or runs, with the callbacks that settle its promise. */
export interface Entry {
  job: Job;
  resolve(result: JobResult): void;
  reject(error: unknown): void;
  signal: AbortSignal | undefined;
  queuedAt: number;
  startedAt: number;
  /** Time at which the model returned the job's first logits, in milliseconds; null before. */
  promptDoneAt: number | null;
}

/** Holds a job that has a sequence and runs. */
export interface Turn {
  entry: Entry;
  run: JobRun;
  /** Number of prefix tokens that were not cached, so that the job had to read them. */
  unread: number;
}

/** Describes one job's part of a planned run of the model. */
export interface PlannedTurn {
  turn: Turn;
  plan: Plan;
  newTokens: number;
}

/** Tells whether a job has batch priority, so that interactive jobs go before it. */
export function isBatch({ job }: Entry): boolean {
  return job.priority === 'batch';
}

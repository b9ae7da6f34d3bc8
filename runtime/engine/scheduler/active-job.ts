import type { Job, JobResult } from '../job.ts';
import type { JobRun } from '../job-run.ts';
import type { Plan } from './plan.ts';

/**
 * Holds a job that was submitted to the engine, with the functions that settle its promise. Times are in milliseconds,
 * on the clock of `EngineOptions.now`.
 */
export interface SubmittedJob {
  job: Job;
  resolve(result: JobResult): void;
  reject(error: unknown): void;
  signal: AbortSignal | undefined;
  queuedAt: number;
  /** Time at which the job got a sequence; 0 while it waits. */
  startedAt: number;
  /** Time at which the model returned the job's first logits; null before that. */
  promptDoneAt: number | null;
}

/** Holds a job that has a sequence and runs. */
export interface ActiveJob {
  submitted: SubmittedJob;
  run: JobRun;
  /** Number of prefix tokens that the KV cache did not hold when the job started, and that the job must prefill. */
  unread: number;
}

/** Describes one job's part of a planned run of the model. */
export interface PlannedJob {
  active: ActiveJob;
  plan: Plan;
  newTokens: number;
}

/** Returns the name of who sent a job; empty if the caller has none. */
export function callerOf({ job }: SubmittedJob): string {
  return job.caller ?? '';
}

/** Tells whether a job has batch priority. Interactive jobs go first. */
export function isBatch({ job }: SubmittedJob): boolean {
  return job.priority === 'batch';
}

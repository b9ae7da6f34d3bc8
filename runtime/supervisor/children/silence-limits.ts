import type { Phase } from '../../protocol/messages.ts';

/**
 * Holds, for each phase, the milliseconds without a message after which a process counts as hung and is killed.
 * `SilenceClock.exceeds` says how they are measured: in wall time and in processor time.
 */
export type SilenceLimits = Readonly<Record<Phase | 'start', number>>;

/** Default limits. Those of `open` and `compile` depend on the model's size (`model-limits.ts`). */
export const SILENCE_LIMITS = {
  /** From the start until the process is ready for messages. */
  start: 60_000,
  /** Work on tokenizer, template or grammars: a large vocabulary takes three seconds on a busy machine. */
  text: 10_000,
  /** One step of the model, or the wait for work. */
  step: 120_000,
} as const;

/** Limits, in wall time, that apply once callers wait for the process to end. They end a stuck process soon. */
export const SHORT_SILENCE_LIMITS: Partial<SilenceLimits> = { text: 2_000 };

/** Words that complete "The engine process … for 10 s." for a silent process, by phase, for the log and the caller. */
export const FAILED_TO: Readonly<Record<Phase | 'start', string>> = {
  start: 'did not start',
  open: 'did not open the model',
  text: "made no progress with the model's tokenizer or chat template",
  step: 'did not finish a step of the model',
  compile: 'made no progress with compiling',
};

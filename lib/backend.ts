import type { BatchAnswer, TaskBatch } from './contract/batch.ts';
import type { ChatEvent, ChatRequest } from './contract/chat.ts';
import type { ModelId } from './model-id.ts';
import type { ModelCalibration, ModelCapabilities, ModelContract, ModelStatus } from './schema/model-list.ts';
import type { TraceContext } from './trace-context.ts';

export type {
  BatchAnswer,
  DecideTask,
  ExtractTask,
  FieldProbability,
  ProbabilityOptions,
  QuestionKind,
  SentQuestion,
  Task,
  TaskAnswer,
  TaskBatch,
  Usage,
} from './contract/batch.ts';
export type { ChatEvent, ChatRequest, TokenLogprob, Tool, ToolCallEvent, ToolUse } from './contract/chat.ts';
export type { Device, Metrics } from './schema/metrics.ts';
export type { ModelStatus } from './schema/model-list.ts';

/**
 * Answers the requests that handlers have validated. The Node host injects the engine, the edge a forwarder to its
 * upstreams, and tests a script; handlers do not know which. A call throws `AssayError`; any other error is reported as
 * `internal_error`. Handlers rely on these promises without checking them: every backend must pass the suite in
 * `tests/backend/contract.ts`.
 */
export interface InferenceBackend {
  /** Lists all models that this backend knows, including the active one. */
  listModels(call: Call): Promise<readonly ListedModel[]>;
  /** Answers every task of the batch, each as if it had been sent alone, except that all share `maxOutputTokens`. */
  runTasks(batch: TaskBatch, call: Call): Promise<BatchAnswer>;
  /**
   * Answers a chat as events: `start` once the request is admitted, then `reasoning`, `content` and
   * `tool_call`, then one `finish`. An error before `start` is answered with its HTTP status; a later one ends the
   * stream.
   */
  chat(request: ChatRequest, call: Call): AsyncIterable<ChatEvent>;
}

/**
 * Priorities of requests. A `batch` request runs when no `interactive` one waits, or after three interactive requests
 * have overtaken it.
 */
export const PRIORITIES = ['interactive', 'batch'] as const;
export type Priority = (typeof PRIORITIES)[number];

/** Holds what a backend needs to know about one request besides its content. */
export interface Call {
  /**
   * The request's id, which its response has as `x-request-id`. Logs and the requests that an edge sends to its
   * upstreams contain it.
   */
  requestId: string;
  /** Position of the request in a distributed trace; absent if it belongs to none. */
  trace?: TraceContext;
  /** Priority of the request; `interactive` if absent. */
  priority?: Priority;
  /** Name of the caller, for equal shares of the engine; absent for callers without a key, which count as one. */
  caller?: string;
  /** Scope of cached prefixes: requests reuse those of their own scope only. Absent: that of callers without a key. */
  cacheScope?: string;
  /** Name of the session: an edge sends requests of one session to the same box. Absent: chosen by the context. */
  session?: string;
  /** Tells whether the caller may use a model, for requests that name none; every model if absent. */
  allows?(model: string): boolean;
  /** Milliseconds without a request after which the model may be unloaded, where models are loaded on demand. */
  keepAliveMs?: number;
  /** Aborts when the caller disconnects; the backend then frees the request's resources within one decode step. */
  signal: AbortSignal;
  /**
   * Counts tokens against the quota of the caller's key. For tasks and for a chat, the backend calls it exactly once:
   * when it knows the model, before any work on the request. What is asked again of another model is counted again.
   *
   * @param tokens estimated tokens of the request and its answer; none if absent
   * @param model the model that answers, for the limits that the key has for it
   * @throws AssayError `rate_limited` if the quota is used up; the backend then fails the request with this error
   */
  admit(tokens?: number, model?: string): Promise<void>;
  /** Replaces the tokens that `admit` counted, once they are known better; 0 gives back the request, too. */
  recount?(tokens: number): Promise<void>;
}

export interface ListedModel {
  id: ModelId;
  status: ModelStatus;
  /** Time when the model was stored on this machine, in seconds since 1970-01-01 UTC; absent if unknown. */
  created?: number;
  /** SHA-256 hash over the files of the active model, in hex; absent for other models, or if unknown. */
  fingerprint?: string;
  /** Hash of what decides its probabilities besides the question: files, number format and wording. */
  policy_fingerprint?: string;
  /** Calibration of the probabilities of the active model; absent for other models, or if there is none. */
  calibration?: ModelCalibration;
  /** Describes what the active model can do; absent for other models. */
  capabilities?: ModelCapabilities;
  /** Contract by which the active model is asked; absent for other models. */
  contract?: ModelContract;
}

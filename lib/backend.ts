import type { AnswerShape, JsonSchema } from './answer-shape.ts';
import type { ChatMessage, MediaPart } from './conversation.ts';
import type { ModelId } from './model-id.ts';
import type { Language } from './schema/language.ts';
import type { Metrics } from './schema/metrics.ts';
import type { ModelCalibration, ModelStatus } from './schema/model-list.ts';
import type { ConfidenceFormula } from './schema/question-fields.ts';
import type { CutTasks } from './tasks/cut-tasks.ts';
import type { TraceContext } from './trace-context.ts';

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
   * Answers a chat as events: `start` once the request has a slot in the queue, then `reasoning`, `content` and
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
  /** Aborts when the caller disconnects; the backend then frees the request's resources within one decode step. */
  signal: AbortSignal;
  /**
   * Counts tokens against the quota of the caller's key. For tasks and for a chat, the backend calls it exactly once:
   * when it knows the model, before any work on the request.
   *
   * @param tokens estimated tokens of the request and its answer; none if absent
   * @throws AssayError `rate_limited` if the quota is used up; the backend then fails the request with this error
   */
  admit(tokens?: number): Promise<void>;
  /** Replaces the tokens that `admit` counted, once they are known better. */
  recount?(tokens: number): Promise<void>;
}

export interface ListedModel {
  id: ModelId;
  status: ModelStatus;
  /** Time when the model was stored on this machine, in seconds since 1970-01-01 UTC; absent if unknown. */
  created?: number;
  /** SHA-256 hash over the files of the active model, in hex; absent for other models, or if unknown. */
  fingerprint?: string;
  /** Calibration of the probabilities of the active model; absent for other models, or if there is none. */
  calibration?: ModelCalibration;
}

export interface TaskBatch {
  /**
   * Model id as the client sent it; the active model if absent. The backend throws `model_not_found` if it has no such
   * model (also for a string that is not an id) and `model_not_loaded` if the model is not loaded.
   */
  model?: string;
  /**
   * The shared input: free text, or messages. `state` is the JSON text of a context that was sent as an object or list,
   * for models whose prompt has its own JSON.
   */
  input: { context: string; state?: string } | { messages: readonly ChatMessage[] };
  /**
   * Parts from the request's `images` and `audio`. The prompt places them before the context, or before the parts of
   * the last user message.
   */
  media: readonly MediaPart[];
  tasks: readonly Task[];
  temperature: number;
  /** Maximum number of completion tokens for all tasks of the batch together. */
  maxOutputTokens: number;
  /** Language of the answers, for tasks that do not set their own. */
  language?: Language;
  /**
   * Present if the probabilities of the answers are requested. Every decision with options is then made, even if
   * `maxOutputTokens` is used up.
   */
  probabilities?: ProbabilityOptions;
  /** Narrows the scope of cached prefixes to requests with the same salt. */
  cacheSalt?: string;
}

/** Sets how the probabilities of a batch are measured. */
export interface ProbabilityOptions {
  /**
   * Number of orders in which each question shows its options to the model. The log-probabilities of each option are
   * averaged over the orders. If absent, the backend's setting applies.
   */
  orders?: number;
  /** True to apply the active calibration; false to return the model's own probabilities. */
  calibrated: boolean;
}

/**
 * Kinds of questions with options: whether something is true (`predicate`), which option applies (`choice`), or how
 * much (`score`).
 */
export const QUESTION_KINDS = ['predicate', 'choice', 'score'] as const;
export type QuestionKind = (typeof QUESTION_KINDS)[number];

export type Task = DecideTask | ExtractTask;

export interface DecideTask {
  type: 'decide';
  name: string;
  question: string;
  /** The allowed answers. If absent, the model answers briefly in its own words. */
  options?: readonly string[];
  /** One description for each option, in the same order; null for an option without one. */
  descriptions?: readonly (string | null)[];
  /** Kind of question whose calibration applies to the probabilities; `choice` if absent. */
  kind?: QuestionKind;
  instruction?: string;
  language?: Language;
  /**
   * The question as it was sent, for models whose prompt has its own words and JSON; absent: the other fields say all.
   */
  sent?: SentQuestion;
}

/** Holds the name of a question, and JSON texts of what was sent with it. */
export interface SentQuestion {
  id: string;
  instructions?: string;
  /** Criteria in the form of System One: of `true` and `false`, of labels, or a list of levels. */
  criteria?: string;
}

export interface ExtractTask {
  type: 'extract';
  name: string;
  instruction: string;
  /** The shape of the answer, from `keys`, `schema`, both, or neither. */
  shape: AnswerShape;
  language?: Language;
}

export interface BatchAnswer {
  model: ModelId;
  /** One entry for each task, in the order sent. */
  answers: readonly TaskAnswer[];
  finishReason: 'stop' | 'length' | 'content_filter';
  /** Tasks whose answers were cut, at `maxOutputTokens` or the end of the context; absent if there are none. */
  cut?: CutTasks;
  usage: Usage;
  /** Number of prompt tokens that were reused from the prefix cache. Present only if probabilities were requested. */
  cachedTokens?: number;
}

export interface TaskAnswer {
  name: string;
  /**
   * The answer as JSON text with its members in order: `{"value":"yes"}`. It is text because a JavaScript object would
   * move keys such as `10` to the front.
   */
  json: string;
  /**
   * Natural logarithm of each option's probability, in the order of the options; the probabilities sum to 1. Present
   * only if probabilities were requested and the task has options.
   */
  optionLogprobs?: readonly number[];
  /** Formula of the confidence that the model's author uses; absent: the model's author states none. */
  confidence?: ConfidenceFormula;
  /**
   * Probability of each string, number, boolean and null that the model wrote, in order. Present only if probabilities
   * of an extraction were requested.
   */
  fields?: readonly FieldProbability[];
}

export interface FieldProbability {
  /** JSON Pointer (RFC 6901) of the value in the answer: `/lines/0/sku`. */
  path: string;
  /**
   * Product of the probabilities of the value's tokens, each relative to the tokens that the grammar allowed; then
   * calibrated, if the batch asks for it.
   */
  probability: number;
}

export interface Usage {
  /** Prompt tokens of the whole batch: the shared prefix counted once, plus each task's own part. */
  promptTokens: number;
  /** Tokens that the model chose. Tokens that the grammar forces (jump-forward) are not counted. */
  completionTokens: number;
}

export interface ChatRequest {
  /** Model id as sent (see `TaskBatch.model`); the active model if absent. */
  model?: string;
  messages: readonly ChatMessage[];
  /** Maximum number of completion tokens; the backend's own limit if absent. */
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  seed?: number;
  stop: readonly string[];
  presencePenalty: number;
  frequencyPenalty: number;
  /**
   * Number of likely alternatives to report with each token's log-probability, from 0. If absent, no log-probabilities
   * are reported.
   */
  topLogprobs?: number;
  format: { type: 'text' } | { type: 'json'; shape: AnswerShape };
  /** Narrows the scope of cached prefixes to requests with the same salt. */
  cacheSalt?: string;
  /** Tools that the model may call; none if absent. Allowed only with the format `text`. */
  tools?: ToolUse;
}

/** Describes the tools of a chat and how the model may call them. */
export interface ToolUse {
  /** At least one, with distinct names. */
  tools: readonly Tool[];
  /** `auto`: the model decides. `required`: it must call a tool. A name: it must call the tool with this name. */
  choice: 'auto' | 'required' | { name: string };
  /** True to allow several calls in one answer, if the model's chat template can express them. */
  parallel: boolean;
}

export interface Tool {
  name: string;
  description?: string;
  /** Checked JSON Schema of the arguments (`checkAnswerSchema`). */
  parameters: JsonSchema;
}

export type ChatEvent =
  | { type: 'start'; model: ModelId }
  | { type: 'reasoning'; text: string }
  | { type: 'content'; text: string; logprobs?: readonly TokenLogprob[] }
  | ToolCallEvent
  | { type: 'finish'; reason: 'stop' | 'length' | 'repetition' | 'content_filter'; usage: Usage; metrics: Metrics };

/** Reports a part of a tool call. The calls of an answer follow each other, and come after its content. */
export interface ToolCallEvent {
  type: 'tool_call';
  /** Index of the call in the answer, from 0. */
  index: number;
  /** Name of the tool; present only in the first event of a call. */
  name?: string;
  /** The next characters of the arguments, which are the JSON text of an object; may be empty. */
  arguments: string;
}

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: readonly number[];
  top: readonly { token: string; logprob: number; bytes: readonly number[] }[];
}

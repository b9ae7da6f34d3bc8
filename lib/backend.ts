import type { AnswerShape, JsonSchema } from './answer-shape.ts';
import type { ChatMessage } from './conversation.ts';
import type { CutTasks } from './decision/cut-tasks.ts';
import type { ModelId } from './model-id.ts';
import type { Language } from './schema/language.ts';
import type { Metrics } from './schema/metrics.ts';
import type { ModelCalibration, ModelStatus } from './schema/model-list.ts';
import type { TraceContext } from './trace-context.ts';

export type { Device, Metrics } from './schema/metrics.ts';
export type { ModelStatus } from './schema/model-list.ts';

/**
 * Answers the requests that handlers have validated. The Node host injects the engine, the edge a forwarder, a test a
 * script; a handler cannot tell. A call throws `AssayError`; any other error is reported as `internal_error`. Handlers
 * rely on what is promised here without checking it again: `tests/backend/contract.ts` is the suite that every backend
 * must pass.
 */
export interface InferenceBackend {
  /** Lists all models that this backend knows, the active one among them. */
  listModels(call: Call): Promise<readonly ListedModel[]>;
  /** Answers every task of the batch, each as if it had been sent alone. */
  runTasks(batch: TaskBatch, call: Call): Promise<BatchAnswer>;
  /**
   * Answers a chat as events: `start` once the request has a slot in the queue, then `reasoning`, `content` and
   * `tool_call`, then one `finish`. Errors before `start` become a status; later ones end the stream.
   */
  chat(request: ChatRequest, call: Call): AsyncIterable<ChatEvent>;
}

/** Holds the context of one call. */
/** `batch` requests run when no interactive one waits, and at least once for every three of those that pass them. */
export const PRIORITIES = ['interactive', 'batch'] as const;
export type Priority = (typeof PRIORITIES)[number];

export interface Call {
  /** The `x-request-id` of this request, for logs and for the upstreams of an edge. */
  requestId: string;
  /** Locates the request in a distributed trace, if its caller sent `traceparent`. */
  trace?: TraceContext;
  /** Absent: `interactive`. */
  priority?: Priority;
  /** Aborts when the caller leaves; the backend then frees its resources within one decode step. */
  signal: AbortSignal;
  /**
   * Counts the request against the key's quota. The backend calls it exactly once: after every check that can refuse
   * the request (model, modality, length) and before it queues. Throws `rate_limited`.
   */
  admit(): Promise<void>;
}

export interface ListedModel {
  id: ModelId;
  status: ModelStatus;
  /** Time when the model came to this machine, in seconds since 1970-01-01 UTC; absent if the backend does not know. */
  created?: number;
  /** Of the active model, if the backend knows it: sha256 over its files, and the calibration of its probabilities. */
  fingerprint?: string;
  calibration?: ModelCalibration;
}

export interface TaskBatch {
  /** As sent. The backend throws `model_not_found` (also for a string that is not an id) or `model_not_loaded`. */
  model: string;
  /** The shared input: free text, or messages. */
  input: { context: string } | { messages: readonly ChatMessage[] };
  /** `images` and `audio` of the request; they come after the input. */
  media: readonly import('./conversation.ts').MediaPart[];
  tasks: readonly Task[];
  temperature: number;
  /** The most completion tokens of the whole batch. */
  maxOutputTokens: number;
  /** For tasks that have no language of their own. */
  language?: Language;
  /** Asks for the probabilities of the answers too. Decisions with options are then always made, outside the budget. */
  probabilities?: ProbabilityOptions;
}

/** Describes the measurement of a batch's probabilities. */
export interface ProbabilityOptions {
  /**
   * The number of orders in which each question shows its options to the model; the answers are averaged. Absent: the
   * backend's setting.
   */
  orders?: number;
  /** False: the model's own probabilities, without the active calibration. */
  calibrated: boolean;
}

/** The kind of a question with options: whether something is true, which one it is, or how much. */
export const QUESTION_KINDS = ['predicate', 'choice', 'score'] as const;
export type QuestionKind = (typeof QUESTION_KINDS)[number];

export type Task = DecideTask | ExtractTask;

export interface DecideTask {
  type: 'decide';
  name: string;
  question: string;
  /** The allowed answers; absent: a short answer in the model's own words. */
  options?: readonly string[];
  /** A description of each option, null for none; as many as there are options. */
  descriptions?: readonly (string | null)[];
  /** The kind of calibration for its probabilities; absent: that of a choice. */
  kind?: QuestionKind;
  instruction?: string;
  language?: Language;
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
  /** Absent if no answer was cut. */
  cut?: CutTasks;
  usage: Usage;
  /** Prompt tokens that were in the prefix cache. Only if probabilities were requested. */
  cachedTokens?: number;
}

export interface TaskAnswer {
  name: string;
  /** The answer as JSON text, members in order: `{"value":"yes"}`. Text, because objects move keys such as `10`. */
  json: string;
  /**
   * Only if probabilities were requested and the task has options: the natural logarithm of each option's probability
   * among the options, in their order.
   */
  optionLogprobs?: readonly number[];
  /** Only if probabilities of an extraction were requested: one entry for each written value, in order. */
  fields?: readonly FieldProbability[];
}

export interface FieldProbability {
  /** JSON Pointer (RFC 6901) of the value in the answer: `/lines/0/sku`. */
  path: string;
  /** Product of the probabilities of its chosen tokens, each among the tokens that the grammar allowed; calibrated. */
  probability: number;
}

export interface Usage {
  /** The shared prefix counts once, and each task's own part. */
  promptTokens: number;
  /** Tokens that the model chose; forced text is free. */
  completionTokens: number;
}

export interface ChatRequest {
  /** As sent (see `TaskBatch.model`). Absent: the active model. */
  model?: string;
  messages: readonly ChatMessage[];
  /** Absent: the backend's own limit. */
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  seed?: number;
  stop: readonly string[];
  presencePenalty: number;
  frequencyPenalty: number;
  /** Number of alternatives for each token; absent: no log-probabilities. */
  topLogprobs?: number;
  format: { type: 'text' } | { type: 'json'; shape: AnswerShape };
  /** Absent: the model may call no tools. Only with the format `text`. */
  tools?: ToolUse;
}

/** Describes the tools that a chat may call. */
export interface ToolUse {
  /** At least one, with distinct names. */
  tools: readonly Tool[];
  /** `auto`: the model decides. `required`: it has to call a tool. A name: it has to call the tool with this name. */
  choice: 'auto' | 'required' | { name: string };
  /** Allows several calls in one answer, where the model's chat template has a form for that. */
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
  | { type: 'finish'; reason: 'stop' | 'length' | 'content_filter'; usage: Usage; metrics: Metrics };

/** Reports a part of a tool call. The calls of an answer follow each other, and come after its content. */
export interface ToolCallEvent {
  type: 'tool_call';
  /** The number of calls before this one. */
  index: number;
  /** In the first event of a call. */
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

import * as v from 'valibot';
import { isObject } from '../json/property.ts';
import { Language } from '../schema/language.ts';
import { ConfidenceFormula, MOST_ORDERS } from '../schema/question-fields.ts';
import { count, modelId, probability } from '../schema/values.ts';
import { strictObject, variant } from '../validation/objects.ts';
import type { JsonSchema, AnswerShape as Shape } from './answer-shape.ts';
import { ChatMessage, list, MediaPart, real, short, text } from './conversation.ts';

/* A batch of tasks and its answer, as handlers, edge and engine process pass them on. Unknown members are refused. */

/** A model id. */
export const Model = modelId();

/** A JSON Schema that `checkAnswerSchema` has accepted. */
export const CheckedSchema = v.custom<JsonSchema>(isObject);

export const AnswerShapeSchema: v.GenericSchema<unknown, Shape> = variant('kind', [
  strictObject({ kind: v.literal('keys'), keys: list(text, 128) }),
  strictObject({ kind: v.literal('schema'), schema: CheckedSchema, keys: v.exactOptional(list(text, 128)) }),
  strictObject({ kind: v.literal('open') }),
  strictObject({ kind: v.literal('any') }),
]);

/**
 * Kinds of questions with options: whether something is true (`predicate`), which option applies (`choice`), or how
 * much (`score`).
 */
const QUESTION_KINDS = ['predicate', 'choice', 'score'] as const;
export type QuestionKind = (typeof QUESTION_KINDS)[number];

/** Holds the name of a question, and JSON texts of what was sent with it. */
const SentQuestion = strictObject({
  id: short,
  instructions: v.exactOptional(text),
  /** Criteria in the form of System One: of `true` and `false`, of labels, or a list of levels. */
  criteria: v.exactOptional(text),
});
export type SentQuestion = v.InferOutput<typeof SentQuestion>;

const DecideTask = strictObject({
  type: v.literal('decide'),
  name: short,
  question: text,
  /** The allowed answers. If absent, the model answers briefly in its own words. */
  options: v.exactOptional(list(short, 256)),
  /** One description for each option, in the same order; null for an option without one. */
  descriptions: v.exactOptional(list(v.nullable(text), 256)),
  /** Kind of question whose calibration applies to the probabilities; `choice` if absent. */
  kind: v.exactOptional(v.picklist(QUESTION_KINDS)),
  instruction: v.exactOptional(text),
  language: v.exactOptional(Language),
  /**
   * The question as it was sent, for models whose prompt has its own words and JSON; absent: the other fields say all.
   */
  sent: v.exactOptional(SentQuestion),
  /** Name of the question as the client sent it, for thresholds and metrics; absent if it has none. */
  id: v.exactOptional(short),
  /** True if the last option says that the input does not tell. */
  unsure: v.exactOptional(v.literal(true)),
  /**
   * Present if the task asks for one label of a question of many labels: true for its first label. The tasks of its
   * other labels follow.
   */
  first: v.exactOptional(v.boolean()),
});
export type DecideTask = v.InferOutput<typeof DecideTask>;

const ExtractTask = strictObject({
  type: v.literal('extract'),
  name: short,
  instruction: text,
  /** The shape of the answer, from `keys`, `schema`, both, or neither. */
  shape: AnswerShapeSchema,
  /**
   * The shape of the answer if the input contains what is asked for; `shape` then also allows null in its place. The
   * answer has this shape, and `TaskAnswer.absent` tells how probable null was. Needs `TaskBatch.probabilities`.
   */
  present: v.exactOptional(AnswerShapeSchema),
  /** True to quote every string without a pattern, format or enum from the texts of the input. */
  verbatim: v.exactOptional(v.boolean()),
  language: v.exactOptional(Language),
});
export type ExtractTask = v.InferOutput<typeof ExtractTask>;

const Task = variant('type', [DecideTask, ExtractTask]);
export type Task = v.InferOutput<typeof Task>;

/** Sets how the probabilities of a batch are measured. */
const ProbabilityOptions = strictObject({
  /**
   * Number of orders in which each question shows its options to the model. The log-probabilities of each option are
   * averaged over the orders. If absent, the backend's setting applies.
   */
  orders: v.exactOptional(v.pipe(count, v.minValue(1), v.maxValue(MOST_ORDERS))),
  /** True to apply the active calibration; false to return the model's own probabilities. */
  calibrated: v.boolean(),
  /**
   * Largest share of automated answers that may be wrong; present if answers must say whether they may be automated.
   */
  maxError: v.exactOptional(v.pipe(real, v.gtValue(0), v.ltValue(1))),
});
export type ProbabilityOptions = v.InferOutput<typeof ProbabilityOptions>;

/** Maximum number of tasks in a request: that of the decision formats, which is higher than that of the tasks API. */
export const MOST_TASKS = 400;

export const TaskBatch = strictObject({
  /**
   * Model id as the client sent it; the active model if absent. The backend throws `model_not_found` if it has no such
   * model (also for a string that is not an id) and `model_not_loaded` if the model is not loaded.
   */
  model: v.exactOptional(text),
  /**
   * The shared input: free text, or messages. `state` is the JSON text of a context that was sent as an object or list,
   * for models whose prompt has its own JSON.
   */
  input: v.union([
    strictObject({ context: text, state: v.exactOptional(text) }),
    strictObject({ messages: list(ChatMessage) }),
  ]),
  /**
   * Parts from the request's `images` and `audio`. The prompt places them before the context, or before the parts of
   * the last user message.
   */
  media: list(MediaPart),
  tasks: v.pipe(v.array(Task), v.minLength(1), v.maxLength(MOST_TASKS), v.readonly()),
  temperature: real,
  /** Maximum number of completion tokens for all tasks of the batch together. */
  maxOutputTokens: count,
  /** Language of the answers, for tasks that do not set their own. */
  language: v.exactOptional(Language),
  /**
   * Present if the probabilities of the answers are requested. Every decision with options is then made, even if
   * `maxOutputTokens` is used up.
   */
  probabilities: v.exactOptional(ProbabilityOptions),
  /** Narrows the scope of cached prefixes to requests with the same salt. */
  cacheSalt: v.exactOptional(text),
});
export type TaskBatch = v.InferOutput<typeof TaskBatch>;

const FieldProbability = strictObject({
  /** JSON Pointer (RFC 6901) of the value in the answer: `/lines/0/sku`. */
  path: text,
  /**
   * Product of the probabilities of the value's tokens, each relative to the tokens that the grammar allowed; then
   * calibrated, if the batch asks for it.
   */
  probability,
  /**
   * Locates the value in the context, as indices of UTF-16 code units; present only for models that find spans. The
   * context must then be the text as the client sent it.
   */
  evidence: v.exactOptional(strictObject({ start: count, end: count })),
});
export type FieldProbability = v.InferOutput<typeof FieldProbability>;

export const TaskAnswer = strictObject({
  name: short,
  /**
   * The answer as JSON text with its members in order: `{"value":"yes"}`. It is text because a JavaScript object would
   * move keys such as `10` to the front.
   */
  json: text,
  /**
   * Natural logarithm of each option's probability, in the order of the options; the probabilities sum to 1. Present
   * only if probabilities were requested and the task has options.
   */
  optionLogprobs: v.exactOptional(list(v.pipe(real, v.maxValue(0)), 256)),
  /**
   * Probability that the model, free to write anything, writes one of the options: low if it would rather say something
   * else. Uncalibrated. Absent where options are not scored as texts.
   */
  labelMass: v.exactOptional(probability),
  /** Formula of the confidence that the model's author uses; absent: the model's author states none. */
  confidence: v.exactOptional(ConfidenceFormula),
  /**
   * Probability of each string, number, boolean and null that the model wrote, in order. Present only if probabilities
   * of an extraction were requested. The context length of a model bounds their number.
   */
  fields: v.exactOptional(list(FieldProbability)),
  /**
   * Probability that the input does not contain what is asked for: the share of the tokens that begin null among those
   * with which a value or null could begin. Present only for a task with `present`.
   */
  absent: v.exactOptional(probability),
  /**
   * Probability of the whole answer: the product over all tokens that the model chose, those between the values
   * included. Present only for a task with `present`.
   */
  certainty: v.exactOptional(probability),
  /** Model that answered; present if questions may be asked again (lib/questions/escalation.ts). */
  answeredBy: v.exactOptional(short),
  /** Present if asking again has failed, and this is the first answer. */
  escalation: v.exactOptional(v.literal('failed')),
  /** Tells whether the answer may be automated, if the batch has `maxError`; null if nothing is certified for it. */
  automated: v.exactOptional(v.nullable(v.boolean())),
  /** True if the model abstains: it answers that the input does not tell. */
  abstained: v.exactOptional(v.boolean()),
  /** The window of the context that the answer comes from; present only for a text that was read in windows. */
  window: v.exactOptional(strictObject({ index: count, count, start: count, end: count })),
  /** Other values that windows have at a path of the answer. */
  candidates: v.exactOptional(
    list(
      strictObject({
        path: text,
        json: text,
        probability,
        absent: probability,
        window: count,
        evidence: v.exactOptional(strictObject({ start: count, end: count })),
      }),
    ),
  ),
});
export type TaskAnswer = v.InferOutput<typeof TaskAnswer>;

export const Usage = strictObject({
  /** Prompt tokens of the whole batch: the shared prefix counted once, plus each task's own part. */
  promptTokens: count,
  /** Prompt tokens of the shared prefix without media: the input and what precedes it. Absent for chats. */
  stateTokens: v.exactOptional(count),
  /** Prompt tokens of images and recordings. Absent for chats. */
  mediaTokens: v.exactOptional(count),
  /** Tokens that the model chose. Tokens that the grammar forces (jump-forward) are not counted. */
  completionTokens: count,
});
export type Usage = v.InferOutput<typeof Usage>;

export const FinishReason = v.picklist(['stop', 'length', 'content_filter']);

/** Names of the tasks whose answers were cut short. */
export const CutNames = list(short, MOST_TASKS);

/** Lists the tasks of a batch whose answers were cut, at `TaskBatch.maxOutputTokens` or the end of the context. */
const CutTasks = strictObject({
  /** Names of the cut tasks, in the order sent. */
  names: CutNames,
  /**
   * Number of further cut tasks, which `names` lacks because they did not fit the header `assay-cut-tasks` of an
   * upstream.
   */
  more: count,
});
export type CutTasks = v.InferOutput<typeof CutTasks>;

export const BatchAnswer = strictObject({
  model: Model,
  /** One entry for each task, in the order sent. */
  answers: list(TaskAnswer, MOST_TASKS),
  finishReason: FinishReason,
  /** Tasks whose answers were cut, at `maxOutputTokens` or the end of the context; absent if there are none. */
  cut: v.exactOptional(CutTasks),
  usage: Usage,
  /** Number of prompt tokens that were reused from the prefix cache. Present only if probabilities were requested. */
  cachedTokens: v.exactOptional(count),
});
export type BatchAnswer = v.InferOutput<typeof BatchAnswer>;

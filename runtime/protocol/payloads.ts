import * as v from 'valibot';
import type { JsonSchema } from '../../lib/answer-shape.ts';
import {
  type ChatRequest,
  QUESTION_KINDS,
  type TaskAnswer,
  type TaskBatch,
  type TokenLogprob,
  type Usage,
} from '../../lib/backend.ts';
import { MEDIA_KINDS } from '../../lib/conversation.ts';
import { LANGUAGE_NAMES } from '../../lib/prompt/language-names.ts';
import type { Language } from '../../lib/schema/language.ts';
import { Metrics } from '../../lib/schema/metrics.ts';
import { ConfidenceFormula, MOST_ORDERS } from '../../lib/schema/question-fields.ts';

/**
 * Schemas for the requests and answers of `lib/backend.ts`, which the messages contain. The bounds are at least those
 * of the API (docs/interface.md, D-6), because they check the other process, not the user. The objects are strict: a
 * field that only one side knows is an error instead of being dropped.
 */

/** Text of a request or an answer, at most 20 Mi characters: a request body has at most 20 MiB. */
const Text = v.pipe(v.string(), v.maxLength(20 * 1024 * 1024));
const Short = v.pipe(v.string(), v.maxLength(4096));
const list = <S extends v.GenericSchema>(schema: S, most: number) => v.pipe(v.array(schema), v.maxLength(most));
const Count = v.pipe(v.number(), v.integer(), v.minValue(0));
const Real = v.pipe(v.number(), v.finite());
// A cast, because `Object.keys` returns strings, whatever the type of the keys.
const LanguageName = v.picklist(Object.keys(LANGUAGE_NAMES) as Language[]);

const Schema = v.custom<JsonSchema>((value) => typeof value === 'object' && value !== null && !Array.isArray(value));
const Shape = v.variant('kind', [
  v.strictObject({ kind: v.literal('keys'), keys: list(Text, 128) }),
  v.strictObject({ kind: v.literal('schema'), schema: Schema, keys: v.exactOptional(list(Text, 128)) }),
  v.strictObject({ kind: v.literal('open') }),
  v.strictObject({ kind: v.literal('any') }),
]);

export const Sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/u));
const Pixels = v.pipe(Count, v.minValue(1), v.maxValue(1_000_000));
const MediaPart = v.strictObject({
  type: v.picklist(MEDIA_KINDS),
  source: v.variant('type', [
    v.strictObject({ type: v.literal('url'), url: Text }),
    v.strictObject({ type: v.literal('base64'), data: Text, mimeType: Text }),
  ]),
  detail: v.exactOptional(v.picklist(['low', 'high', 'auto'])),
  param: Text,
  opened: v.exactOptional(
    v.union([
      v.strictObject({ sha256: Sha256, width: Pixels, height: Pixels }),
      v.strictObject({ sha256: Sha256, samples: v.pipe(Count, v.minValue(1), v.maxValue(10_000_000)) }),
    ]),
  ),
});
/** Maximum number of tools in a request, and of tool calls in one message. */
const MOST_TOOLS = 128;
const ChatMessages = v.array(
  v.strictObject({
    role: v.picklist(['system', 'user', 'assistant', 'tool']),
    parts: v.array(v.union([v.strictObject({ type: v.literal('text'), text: Text }), MediaPart])),
    name: v.exactOptional(Text),
    toolCalls: v.exactOptional(list(v.strictObject({ id: Short, name: Short, arguments: Text }), MOST_TOOLS)),
    toolCallId: v.exactOptional(Short),
  }),
);

/** Maximum number of tasks in a request: that of the decision formats, which is higher than that of the tasks API. */
const MOST_TASKS = 400;
const Orders = v.pipe(Count, v.minValue(1), v.maxValue(MOST_ORDERS));
const common = { name: Short, language: v.exactOptional(LanguageName) };
const Task = v.variant('type', [
  v.strictObject({
    type: v.literal('decide'),
    ...common,
    question: Text,
    options: v.exactOptional(list(Short, 256)),
    descriptions: v.exactOptional(list(v.nullable(Text), 256)),
    kind: v.exactOptional(v.picklist(QUESTION_KINDS)),
    instruction: v.exactOptional(Text),
    sent: v.exactOptional(
      v.strictObject({ id: Short, instructions: v.exactOptional(Text), criteria: v.exactOptional(Text) }),
    ),
  }),
  v.strictObject({ type: v.literal('extract'), ...common, instruction: Text, shape: Shape }),
]);

export const TaskBatchSchema: v.GenericSchema<unknown, TaskBatch> = v.strictObject({
  model: v.exactOptional(Text),
  input: v.union([
    v.strictObject({ context: Text, state: v.exactOptional(Text) }),
    v.strictObject({ messages: ChatMessages }),
  ]),
  media: v.array(MediaPart),
  tasks: v.pipe(v.array(Task), v.minLength(1), v.maxLength(MOST_TASKS)),
  temperature: Real,
  maxOutputTokens: Count,
  language: v.exactOptional(LanguageName),
  probabilities: v.exactOptional(v.strictObject({ orders: v.exactOptional(Orders), calibrated: v.boolean() })),
  cacheSalt: v.exactOptional(Text),
});

export const ChatRequestSchema: v.GenericSchema<unknown, ChatRequest> = v.strictObject({
  model: v.exactOptional(Text),
  messages: ChatMessages,
  maxTokens: v.exactOptional(Count),
  temperature: v.exactOptional(Real),
  topP: v.exactOptional(Real),
  seed: v.exactOptional(Real),
  stop: list(Text, 64),
  presencePenalty: Real,
  frequencyPenalty: Real,
  topLogprobs: v.exactOptional(Count),
  cacheSalt: v.exactOptional(Text),
  format: v.variant('type', [
    v.strictObject({ type: v.literal('text') }),
    v.strictObject({ type: v.literal('json'), shape: Shape }),
  ]),
  tools: v.exactOptional(
    v.strictObject({
      tools: v.pipe(
        v.array(v.strictObject({ name: Short, description: v.exactOptional(Text), parameters: Schema })),
        v.minLength(1),
        v.maxLength(MOST_TOOLS),
      ),
      choice: v.union([v.picklist(['auto', 'required']), v.strictObject({ name: Short })]),
      parallel: v.boolean(),
    }),
  ),
});

const Alternative = { token: Short, logprob: v.number(), bytes: list(Count, 4096) };
export const TokenLogprobs: v.GenericSchema<unknown, readonly TokenLogprob[]> = v.array(
  v.strictObject({ ...Alternative, top: list(v.strictObject(Alternative), 64) }),
);

const Probability = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const Logprob = v.pipe(Real, v.maxValue(0));
const TaskAnswerSchema: v.GenericSchema<unknown, TaskAnswer> = v.strictObject({
  name: Short,
  json: Text,
  optionLogprobs: v.exactOptional(list(Logprob, 256)),
  confidence: v.exactOptional(ConfidenceFormula),
  // Each value takes tokens, generated or forced, so a model's context length bounds the number of values.
  fields: v.exactOptional(list(v.strictObject({ path: Text, probability: Probability }), 1024 * 1024)),
});
export const TaskAnswers = list(TaskAnswerSchema, MOST_TASKS);
/** Names of the tasks whose answers were cut short. */
export const CutNames = list(Short, MOST_TASKS);

const UsageSchema: v.GenericSchema<unknown, Usage> = v.strictObject({ promptTokens: Count, completionTokens: Count });
/** Fields of the last message of an answer, for tasks and for chats. */
export const Finish = {
  reason: v.picklist(['stop', 'length', 'repetition', 'content_filter']),
  usage: UsageSchema,
  metrics: Metrics,
};

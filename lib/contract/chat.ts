import * as v from 'valibot';
import { MOST_TOOLS } from '../schema/chat-tools.ts';
import { Metrics } from '../schema/metrics.ts';
import { EFFORTS } from '../schema/reasoning-fields.ts';
import { count } from '../schema/values.ts';
import { strictObject, variant } from '../validation/objects.ts';
import { AnswerShapeSchema, CheckedSchema, FinishReason, Model, Usage } from './batch.ts';
import { ChatMessage, list, real, short, text } from './conversation.ts';

/* A chat and the events that answer it, as handlers, edge and engine process pass them on. */

const Tool = strictObject({
  name: short,
  description: v.exactOptional(short),
  /** Checked JSON Schema of the arguments (`checkAnswerSchema`). */
  parameters: CheckedSchema,
});
export type Tool = v.InferOutput<typeof Tool>;

/** Describes the tools of a chat and how the model may call them. */
const ToolUse = strictObject({
  /** At least one, with distinct names. */
  tools: v.pipe(v.array(Tool), v.minLength(1), v.maxLength(MOST_TOOLS), v.readonly()),
  /** `auto`: the model decides. `required`: it must call a tool. A name: it must call the tool with this name. */
  choice: v.union([v.picklist(['auto', 'required']), strictObject({ name: short })]),
  /** True to allow several calls in one answer, if the model's chat template can express them. */
  parallel: v.boolean(),
});
export type ToolUse = v.InferOutput<typeof ToolUse>;

export const ChatRequest = strictObject({
  /** Model id as sent (see `TaskBatch.model`); the active model if absent. */
  model: v.exactOptional(text),
  messages: list(ChatMessage),
  /** Maximum number of completion tokens; the backend's own limit if absent. */
  maxTokens: v.exactOptional(count),
  temperature: v.exactOptional(real),
  topP: v.exactOptional(real),
  seed: v.exactOptional(real),
  stop: list(text, 64),
  presencePenalty: real,
  frequencyPenalty: real,
  /**
   * Number of likely alternatives to report with each token's log-probability, from 0. If absent, no log-probabilities
   * are reported.
   */
  topLogprobs: v.exactOptional(count),
  format: variant('type', [
    strictObject({ type: v.literal('text') }),
    strictObject({ type: v.literal('json'), shape: AnswerShapeSchema }),
  ]),
  /** Narrows the scope of cached prefixes to requests with the same salt. */
  cacheSalt: v.exactOptional(text),
  /** Tools that the model may call; none if absent. Allowed only with the format `text`. */
  tools: v.exactOptional(ToolUse),
  /** Allows or forbids reasoning before the answer, and says how much; absent: as the chat template has it. */
  reasoning: v.exactOptional(strictObject({ enabled: v.boolean(), effort: v.exactOptional(v.picklist(EFFORTS)) })),
  /** True if the answer continues the last message, which is an assistant's text. */
  continues: v.exactOptional(v.literal(true)),
});
export type ChatRequest = v.InferOutput<typeof ChatRequest>;

const alternative = { token: short, logprob: v.number(), bytes: list(count, 4096) };
const TokenLogprob = strictObject({ ...alternative, top: list(strictObject(alternative), 64) });
export type TokenLogprob = v.InferOutput<typeof TokenLogprob>;

/**
 * A part of an answer's text, at most 4 Mi characters. An answer grows by far less between two tokens: a grammar can
 * force about 64 KiB at once.
 */
const delta = v.pipe(v.string(), v.maxLength(4 * 1024 * 1024));

/** The events of an answer but for the first and the last. */
export const deltas = {
  reasoning: { text: delta },
  content: { text: delta, logprobs: v.exactOptional(list(TokenLogprob)) },
  /** Reports a part of a tool call. The calls of an answer follow each other, and come after its content. */
  tool_call: {
    /** Index of the call in the answer, from 0. */
    index: count,
    /** Name of the tool; present only in the first event of a call. */
    name: v.exactOptional(delta),
    /** The next characters of the arguments, which are the JSON text of an object; may be empty. */
    arguments: delta,
  },
};

/** The members of the last event of an answer. */
export const finish = { reason: v.picklist([...FinishReason.options, 'repetition']), usage: Usage, metrics: Metrics };

const ToolCallEvent = strictObject({ type: v.literal('tool_call'), ...deltas.tool_call });
export type ToolCallEvent = v.InferOutput<typeof ToolCallEvent>;

export const ChatEvent = variant('type', [
  strictObject({ type: v.literal('start'), model: Model }),
  strictObject({ type: v.literal('reasoning'), ...deltas.reasoning }),
  strictObject({ type: v.literal('content'), ...deltas.content }),
  ToolCallEvent,
  strictObject({ type: v.literal('finish'), ...finish }),
]);
export type ChatEvent = v.InferOutput<typeof ChatEvent>;

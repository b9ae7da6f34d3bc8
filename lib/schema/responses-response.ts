import * as v from 'valibot';
import { TokenAlternative } from './chat-completion.ts';
import { ResponsesTool, ResponsesToolChoice } from './chat-tools.ts';
import { Metrics } from './metrics.ts';
import { ModelIdText } from './model-list.ts';
import { ResponsesReasoningText, ResponsesTextFormat } from './responses-request.ts';
import { count, described, exactOptional } from './values.ts';

/*
 * The answer of `POST /v1/responses` and its events, in the shape of OpenAI's Responses API, with `metrics` as in chat
 * (docs/model-api.md, M-24 and M-25).
 */

const ItemStatus = v.picklist(['in_progress', 'completed', 'incomplete']);

export const ResponsesLogprob = v.object({ ...TokenAlternative.entries, top_logprobs: v.array(TokenAlternative) });
export const ResponsesOutputText = v.object({
  type: v.literal('output_text'),
  text: v.string(),
  annotations: v.pipe(v.array(v.unknown()), v.maxLength(0)),
  logprobs: v.array(ResponsesLogprob),
});

export const ResponsesMessage = v.object({
  id: v.string(),
  type: v.literal('message'),
  role: v.literal('assistant'),
  status: ItemStatus,
  content: v.array(ResponsesOutputText),
});
export const ResponsesReasoning = v.object({
  id: v.string(),
  type: v.literal('reasoning'),
  status: ItemStatus,
  summary: v.pipe(v.array(v.unknown()), v.maxLength(0)),
  content: v.array(ResponsesReasoningText),
});
export const ResponsesFunctionCall = v.object({
  id: v.string(),
  type: v.literal('function_call'),
  status: ItemStatus,
  call_id: v.string(),
  name: v.string(),
  arguments: described(v.string(), 'The arguments as the JSON text of an object; cut if the item is incomplete.'),
});
export const ResponsesOutputItem = v.variant('type', [ResponsesMessage, ResponsesReasoning, ResponsesFunctionCall]);
export type ResponsesOutputItem = v.InferOutput<typeof ResponsesOutputItem>;

export const ResponsesUsage = v.object({
  input_tokens: count,
  input_tokens_details: v.object({ cached_tokens: count, cache_write_tokens: v.literal(0) }),
  output_tokens: count,
  output_tokens_details: exactOptional(
    v.object({ reasoning_tokens: v.literal(0) }),
    'Absent if the model reasoned, because reasoning tokens are not counted separately.',
  ),
  total_tokens: count,
});

export const ResponsesAnswer = v.object({
  id: v.string(),
  object: v.literal('response'),
  created_at: count,
  status: v.picklist(['in_progress', 'completed', 'incomplete']),
  error: v.null(),
  incomplete_details: v.nullable(
    v.object({ reason: v.picklist(['max_output_tokens', 'repetition', 'content_filter']) }),
  ),
  instructions: v.nullable(v.string()),
  max_output_tokens: v.nullable(count),
  metadata: v.record(v.string(), v.string()),
  model: ModelIdText,
  output: v.array(ResponsesOutputItem),
  parallel_tool_calls: v.boolean(),
  previous_response_id: v.null(),
  store: v.literal(false),
  temperature: v.nullable(v.number()),
  text: v.object({ format: ResponsesTextFormat }),
  tool_choice: ResponsesToolChoice,
  tools: v.array(ResponsesTool),
  top_p: v.nullable(v.number()),
  truncation: v.literal('disabled'),
  usage: v.nullable(ResponsesUsage),
  metrics: v.exactOptional(Metrics),
});
export type ResponsesAnswer = v.InferOutput<typeof ResponsesAnswer>;

const numbered = { sequence_number: count };
const inItem = { item_id: v.string(), output_index: count, content_index: v.literal(0) };

export const ResponsesLifeCycleEvent = v.object({
  type: v.picklist(['response.created', 'response.in_progress', 'response.completed', 'response.incomplete']),
  ...numbered,
  response: ResponsesAnswer,
});
export const ResponsesItemEvent = v.object({
  type: v.picklist(['response.output_item.added', 'response.output_item.done']),
  ...numbered,
  output_index: count,
  item: ResponsesOutputItem,
});
export const ResponsesPartEvent = v.object({
  type: v.picklist(['response.content_part.added', 'response.content_part.done']),
  ...numbered,
  ...inItem,
  part: v.variant('type', [ResponsesOutputText, ResponsesReasoningText]),
});
export const ResponsesDeltaEvent = v.object({
  type: v.picklist(['response.output_text.delta', 'response.reasoning_text.delta']),
  ...numbered,
  ...inItem,
  delta: v.string(),
  logprobs: v.exactOptional(v.array(ResponsesLogprob)),
});
export const ResponsesDoneEvent = v.object({
  type: v.picklist(['response.output_text.done', 'response.reasoning_text.done']),
  ...numbered,
  ...inItem,
  text: v.string(),
  logprobs: v.exactOptional(v.array(ResponsesLogprob)),
});
export const ResponsesArgumentsDeltaEvent = v.object({
  type: v.literal('response.function_call_arguments.delta'),
  ...numbered,
  item_id: v.string(),
  output_index: count,
  delta: v.string(),
});
export const ResponsesArgumentsDoneEvent = v.object({
  type: v.literal('response.function_call_arguments.done'),
  ...numbered,
  item_id: v.string(),
  output_index: count,
  name: v.string(),
  arguments: v.string(),
});
export const ResponsesErrorEvent = v.object({
  type: v.literal('error'),
  ...numbered,
  code: v.string(),
  message: v.string(),
  param: v.nullable(v.string()),
});

/** One event of a stream of `POST /v1/responses`. */
export const ResponsesEvent = v.union([
  ResponsesLifeCycleEvent,
  ResponsesItemEvent,
  ResponsesPartEvent,
  ResponsesDeltaEvent,
  ResponsesDoneEvent,
  ResponsesArgumentsDeltaEvent,
  ResponsesArgumentsDoneEvent,
  ResponsesErrorEvent,
]);
export type ResponsesEvent = v.InferOutput<typeof ResponsesEvent>;

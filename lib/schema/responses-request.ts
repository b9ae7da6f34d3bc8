import * as v from 'valibot';
import { object, record, variant } from '../validation/objects.ts';
import { rule, unsupported } from '../validation/rules.ts';
import { type chatChoice, JsonObjectFormat, jsonSchemaMembers, otherForms, TextFormat } from './chat-request.ts';
import { toolUseFields } from './chat-tool-rules.ts';
import {
  argumentsText,
  isFunctionTool,
  MOST_CALLS,
  ResponsesToolChoice,
  responsesTools,
  TOOL_NAME,
} from './chat-tools.ts';
import {
  DecisionAudio,
  DecisionImage,
  DecisionOutputText,
  DecisionRefusalText,
  DecisionText,
} from './decisions-request.ts';
import { contradictingReasoning, reasoningFields } from './reasoning-fields.ts';
import * as sampling from './sampling-fields.ts';
import { cacheSalt } from './sampling-fields.ts';
import { described, nonEmpty, nullish } from './values.ts';

/*
 * Requests of `POST /v1/responses`, as OpenAI's client sends them (npm `openai` 7.55.0, `resources/responses`). As in
 * chat, unknown fields are ignored and null counts as not sent (docs/model-api.md, M-24).
 */

export const ResponsesReasoningText = object({ type: v.literal('reasoning_text'), text: v.string() });
export const ResponsesPart = variant('type', [
  DecisionText,
  DecisionImage,
  DecisionAudio,
  DecisionOutputText,
  DecisionRefusalText,
  ResponsesReasoningText,
]);
export type ResponsesPart = v.InferOutput<typeof ResponsesPart>;

/** Maximum number of items, as of messages in a chat. Instructions count as one. */
const MOST_ITEMS = 4096;

/** The members that each type of input item requires. An item without a type is a message. */
const REQUIRED_MEMBERS = {
  message: ['role', 'content'],
  reasoning: [],
  function_call: ['call_id', 'name', 'arguments'],
  function_call_output: ['call_id', 'output'],
} as const;
type ItemType = keyof typeof REQUIRED_MEMBERS;
const noReference = rule<string>((type) =>
  type === 'item_reference' ? { code: 'unsupported_parameter', message: NO_REFERENCE } : null,
);
const NO_REFERENCE =
  'must not be item_reference: nothing is stored here. Send the item itself (AI SDK: set providerOptions.openai.store ' +
  'to false)';
/** Types of items. The cast restores the type of the keys, which `Object.keys` returns as strings. */
const ITEM_TYPES = Object.keys(REQUIRED_MEMBERS) as ItemType[];
const itemType = v.pipe(v.string(), v.metadata({ enum: ITEM_TYPES }), noReference, v.picklist(ITEM_TYPES));
const text = v.union([v.string(), v.pipe(v.array(ResponsesPart), v.maxLength(1024))]);

export const ResponsesItem = described(
  v.pipe(
    object({
      type: v.nullish(itemType),
      role: v.nullish(v.picklist(['user', 'assistant', 'system', 'developer'])),
      content: v.nullish(text),
      call_id: v.nullish(v.pipe(v.string(), v.minLength(1), v.maxLength(256))),
      name: v.nullish(v.pipe(v.string(), v.maxLength(256))),
      arguments: v.nullish(argumentsText),
      output: v.nullish(text),
    }),
    rule((item) => {
      const type = item.type ?? 'message';
      const missing = REQUIRED_MEMBERS[type].find((name) => item[name] === undefined || item[name] === null);
      return missing ? { code: 'missing_field', at: [missing], message: `is required in a ${type}` } : null;
    }),
    rule(({ type, name }) =>
      type === 'function_call' && !TOOL_NAME.test(name ?? '')
        ? { code: 'invalid_value', at: ['name'], message: 'must be the name of a function' }
        : null,
    ),
    rule(({ type, output }) => {
      const other = type !== 'function_call_output' || typeof output === 'string' ? -1 : mediaAt(output ?? []);
      return other < 0
        ? null
        : { code: 'invalid_value', at: ['output', other, 'type'], message: 'must be text in the output of a tool' };
    }),
  ),
  'A message, an output item of an earlier response, or the output of a function call. Reasoning items are accepted and not shown to the model.',
);
export type ResponsesItem = v.InferOutput<typeof ResponsesItem>;

function mediaAt(parts: readonly ResponsesPart[]): number {
  return parts.findIndex(({ type }) => type === 'input_image' || type === 'input_audio');
}

/**
 * The rule that at most 128 function calls follow each other. They become the calls of one assistant message, which an
 * edge sends on as a chat, with the limit of a chat message.
 */
const fewCalls = rule<ResponsesItem[]>((items) => {
  let calls = 0;
  for (const [i, { type }] of items.entries()) {
    if (type === 'function_call') calls++;
    else if (type !== 'reasoning') calls = 0;
    if (calls > MOST_CALLS) return { code: 'invalid_value', at: [i], message: FEW_CALLS };
  }
  return null;
});
const FEW_CALLS = `is one function_call too many: at most ${MOST_CALLS} may follow each other`;

/** The rule that each `function_call_output` follows a `function_call` with the same `call_id`. */
const answeredCalls = rule<ResponsesItem[]>((items) => {
  const called = new Set<string>();
  for (const [i, { type, call_id }] of items.entries()) {
    if (type === 'function_call') called.add(call_id ?? '');
    if (type === 'function_call_output' && !called.has(call_id ?? '')) {
      return { code: 'invalid_value', at: [i, 'call_id'], message: 'must be the call_id of an earlier function_call' };
    }
  }
  return null;
});

export const ResponsesJsonSchemaFormat = object({ type: v.literal('json_schema'), ...jsonSchemaMembers });
export const ResponsesTextFormat = variant('type', [TextFormat, JsonObjectFormat, ResponsesJsonSchemaFormat]);

const stateless = 'is not supported: nothing is stored here. Send the earlier input and output items in input';

export const ResponsesRequest = v.pipe(
  object({
    model: nullish(nonEmpty, 'Id of the model. Default: the active model.'),
    input: v.union([
      v.string(),
      v.pipe(v.array(ResponsesItem), v.minLength(1), v.maxLength(MOST_ITEMS), fewCalls, answeredCalls),
    ]),
    instructions: nullish(v.string(), 'A system message that precedes the input.'),
    max_output_tokens: described(
      sampling.tokenCount,
      "Limit of output tokens. Default: the server's --chat-max-tokens, which is 1024 unless changed.",
    ),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_logprobs: sampling.topLogprobs,
    cache_salt: cacheSalt,
    include: nullish(
      v.pipe(v.array(v.pipe(v.string(), v.maxLength(256))), v.maxLength(32)),
      'message.output_text.logprobs returns log-probabilities; other values are ignored.',
    ),
    text: v.nullish(object({ format: v.nullish(ResponsesTextFormat) })),
    stream: v.nullish(v.boolean()),
    metadata: nullish(record(v.string(), v.pipe(v.string(), v.maxLength(512))), 'Returned unchanged in the response.'),
    store: unsupported(
      (value) => value === false,
      'must be false or absent: nothing is stored here. Keep the output items, and send them in the next input',
    ),
    previous_response_id: unsupported(() => false, stateless),
    conversation: unsupported(() => false, stateless),
    prompt: unsupported(() => false, 'is not supported: nothing is stored here. Send the text as instructions'),
    background: unsupported((value) => value === false, 'is not supported: wait for the answer, or stream it'),
    truncation: unsupported(
      (value) => value === 'disabled',
      'must be disabled or absent: nothing is cut silently. Send a shorter input',
    ),
    tools: v.nullish(responsesTools),
    tool_choice: v.nullish(ResponsesToolChoice),
    ...reasoningFields,
    ...otherForms('text.format'),
    response_format: otherForms('text.format').format,
    parallel_tool_calls: nullish(
      v.boolean(),
      'Whether an answer may have several function calls, if the model supports that. Default: true.',
    ),
  }),
  rule(({ input, instructions }) =>
    instructions && input.length === MOST_ITEMS && typeof input !== 'string'
      ? {
          code: 'invalid_value',
          at: ['input'],
          message: `must have at most ${MOST_ITEMS - 1} items beside instructions`,
        }
      : null,
  ),
  rule(({ tools, tool_choice }) =>
    toolUseFields(
      { names: (tools ?? []).filter(isFunctionTool).map(({ name }) => name), choice: responsesChoice(tool_choice) },
      ['tool_choice', 'name'],
    ),
  ),
  rule((request) => contradictingReasoning(request)),
);
/** Returns a tool choice as that of a chat without nesting (`chatChoice`). */
export function responsesChoice(
  sent: v.InferOutput<typeof ResponsesToolChoice> | null | undefined,
): ReturnType<typeof chatChoice> {
  if (!sent || typeof sent === 'string' || sent.type === 'function') return sent;
  return { mode: sent.mode, names: sent.tools.map(({ name }) => name) };
}

export type ResponsesRequest = v.InferOutput<typeof ResponsesRequest>;

import * as v from 'valibot';
import { rule } from '../validation/rules.ts';
import { JsonObjectFormat, jsonSchemaMembers, TextFormat } from './chat-request.ts';
import {
  DecisionAudio,
  DecisionImage,
  DecisionOutputText,
  DecisionRefusalText,
  DecisionText,
} from './decisions-request.ts';
import * as sampling from './sampling-fields.ts';
import { isEmpty, unsupported } from './unsupported.ts';

/*
 * Requests of `POST /v1/responses`, as OpenAI's client sends them (npm `openai` 7.55.0, `resources/responses`). As in
 * chat, unknown fields are ignored and null counts as not sent (docs/interface.md, M-24).
 */

export const ResponsesReasoningText = v.object({ type: v.literal('reasoning_text'), text: v.string() });
export const ResponsesPart = v.variant('type', [
  DecisionText,
  DecisionImage,
  DecisionAudio,
  DecisionOutputText,
  DecisionRefusalText,
  ResponsesReasoningText,
]);
export type ResponsesPart = v.InferOutput<typeof ResponsesPart>;

export const ResponsesItem = v.pipe(
  v.object({
    type: v.nullish(v.picklist(['message', 'reasoning'])),
    role: v.nullish(v.picklist(['user', 'assistant', 'system', 'developer'])),
    content: v.nullish(v.union([v.string(), v.pipe(v.array(ResponsesPart), v.maxLength(1024))])),
  }),
  rule((item) => {
    if (item.type === 'reasoning') return null;
    const missing = (['role', 'content'] as const).find((name) => item[name] === undefined || item[name] === null);
    return missing ? { code: 'missing_field', at: [missing], message: 'is required in a message' } : null;
  }),
  v.description('A message, or an output item of an earlier response. Reasoning is left out of the prompt.'),
);
export type ResponsesItem = v.InferOutput<typeof ResponsesItem>;

export const ResponsesJsonSchemaFormat = v.object({ type: v.literal('json_schema'), ...jsonSchemaMembers });
export const ResponsesTextFormat = v.variant('type', [TextFormat, JsonObjectFormat, ResponsesJsonSchemaFormat]);

const stateless = 'is not supported: nothing is stored here. Send the earlier input and output items in input';

export const ResponsesRequest = v.object({
  model: v.nullish(v.pipe(v.string(), v.minLength(1), v.description('Default: the active model.'))),
  input: v.union([v.string(), v.pipe(v.array(ResponsesItem), v.minLength(1), v.maxLength(4096))]),
  instructions: v.nullish(v.pipe(v.string(), v.description('A system message before the input.'))),
  max_output_tokens: v.pipe(
    sampling.tokenCount,
    v.description("Default: the server's --chat-max-tokens, 1024 unless changed."),
  ),
  temperature: sampling.temperature,
  top_p: sampling.topP,
  top_logprobs: sampling.topLogprobs,
  include: v.nullish(
    v.pipe(
      v.array(v.pipe(v.string(), v.maxLength(256))),
      v.maxLength(32),
      v.description('message.output_text.logprobs asks for log-probabilities; anything else is ignored.'),
    ),
  ),
  text: v.nullish(v.object({ format: v.nullish(ResponsesTextFormat) })),
  stream: v.nullish(v.boolean()),
  metadata: v.nullish(
    v.pipe(v.record(v.string(), v.pipe(v.string(), v.maxLength(512))), v.description('Comes back in the response.')),
  ),
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
  tools: unsupported(isEmpty, 'is not supported: ask for JSON with text.format'),
  tool_choice: unsupported((value) => value === 'none' || value === 'auto', 'is not supported: there are no tools'),
});
export type ResponsesRequest = v.InferOutput<typeof ResponsesRequest>;

import * as v from 'valibot';
import { excessOf } from '../json/scan.ts';
import { object } from '../validation/objects.ts';
import { distinct, rule } from '../validation/rules.ts';
import { jsonObject } from './json-object.ts';

// The tools of a chat, in requests and answers, in the shape of OpenAI's Chat Completions API (docs/interface.md,
// M-26 and M-27).

/** Maximum number of tools in a request, and of tool calls in a message, as in OpenAI's API. */
export const MOST_TOOLS = 128;

export const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const toolName = v.pipe(v.string(), v.regex(TOOL_NAME));

const functionType = v.pipe(
  v.string(),
  rule((type) =>
    type === 'function'
      ? null
      : { code: 'unsupported_parameter', message: 'must be function: other tools are not supported' },
  ),
  v.metadata({ const: 'function' }),
);

/** Fields of a function: nested in `function` in Chat Completions, beside `type` in Responses. */
const functionMembers = {
  name: toolName,
  description: v.nullish(v.string()),
  parameters: v.nullish(
    v.pipe(
      jsonObject,
      v.description(
        'JSON Schema 2020-12 of the arguments, which are an object. Absent: the function has no parameters. The arguments ' +
          'always obey the schema, with or without `strict`. They have unlisted members only if it sets additionalProperties.',
      ),
    ),
  ),
  strict: v.nullish(v.boolean()),
};

export const ChatTool = object({ type: functionType, function: object(functionMembers) });
export type ChatTool = v.InferOutput<typeof ChatTool>;

export const chatTools = v.pipe(
  v.array(ChatTool),
  v.maxLength(MOST_TOOLS),
  distinct(
    'invalid_value',
    (tool) => tool.function.name,
    () => ['function', 'name'],
  ),
);

export const ChatNamedTool = object({ type: v.literal('function'), function: object({ name: toolName }) });
export const ChatToolChoice = v.pipe(
  v.union([v.picklist(['none', 'auto', 'required']), ChatNamedTool]),
  v.description(
    'auto (default): the model decides whether to call tools. required: it calls at least one. A named function: it calls that one, once. none: it calls none.',
  ),
);

export const ResponsesTool = object({ type: functionType, ...functionMembers });
export const responsesTools = v.pipe(
  v.array(ResponsesTool),
  v.maxLength(MOST_TOOLS),
  distinct(
    'invalid_value',
    (tool) => tool.name,
    () => ['name'],
  ),
);

export const ResponsesNamedTool = object({ type: v.literal('function'), name: toolName });
export const ResponsesToolChoice = v.pipe(
  v.union([v.picklist(['none', 'auto', 'required']), ResponsesNamedTool]),
  v.description('As tool_choice of a chat completion; the name of a function is beside its type.'),
);

export const argumentsText = v.pipe(
  v.string(),
  rule((text) =>
    isObjectText(text) ? null : { code: 'invalid_value', message: 'must be the JSON text of an object, such as {}' },
  ),
  v.description('The arguments as the JSON text of an object. An empty text counts as {}.'),
);

/** A call of a tool, in an answer or in an assistant message of a later request. */
export const ChatToolCall = object({
  id: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  type: v.literal('function'),
  function: object({ name: toolName, arguments: argumentsText }),
});
export type ChatToolCall = v.InferOutput<typeof ChatToolCall>;

export const chatToolCalls = v.pipe(v.array(ChatToolCall), v.maxLength(MOST_TOOLS));

/** A part of a tool call in a streamed answer. Only the first part of a call has its id, type and name. */
export const ChatToolCallDelta = object({
  index: v.pipe(v.number(), v.integer(), v.minValue(0)),
  id: v.optional(v.string()),
  type: v.optional(v.literal('function')),
  function: object({ name: v.optional(v.string()), arguments: v.string() }),
});
export type ChatToolCallDelta = v.InferOutput<typeof ChatToolCallDelta>;

function isObjectText(text: string): boolean {
  if (text === '') return true;
  if (excessOf(text) !== null) return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

import * as v from 'valibot';
import { isObject } from '../json/property.ts';
import { excessOf } from '../json/scan.ts';
import { object, variant } from '../validation/objects.ts';
import { distinct, rule } from '../validation/rules.ts';
import { jsonObject } from './json-object.ts';
import { count, described, nullish } from './values.ts';

// The tools of a chat, in requests and answers, in the shape of OpenAI's Chat Completions API (docs/model-api.md,
// M-26 and M-27).

/** Maximum number of tools in a request. OpenAI allows 128; hosts of several MCP servers send more. */
export const MOST_TOOLS = 1024;
/** Maximum number of tool calls in a message, as in OpenAI's API. */
export const MOST_CALLS = 128;

/** The names that MCP allows: OpenAI has neither dots nor more than 64 characters. */
export const TOOL_NAME = /^[a-zA-Z0-9_.-]{1,128}$/;
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
  parameters: nullish(
    jsonObject,
    'JSON Schema 2020-12 of the arguments, which are an object. Absent: the function has no parameters. The arguments ' +
      'always obey the schema, with or without `strict`. They have unlisted members only if it sets additionalProperties.',
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
const allowed = <TTool extends v.GenericSchema>(tool: TTool) => ({
  mode: v.picklist(['auto', 'required']),
  tools: v.pipe(v.array(tool), v.minLength(1), v.maxLength(MOST_TOOLS)),
});
export const ChatAllowedTools = object({
  type: v.literal('allowed_tools'),
  allowed_tools: object(allowed(ChatNamedTool)),
});
export const ChatToolChoice = described(
  v.union([v.picklist(['none', 'auto', 'required']), variant('type', [ChatNamedTool, ChatAllowedTools])]),
  'auto (default): the model decides whether to call tools. required: it calls at least one. A named function: it calls that one, once. none: it calls none. allowed_tools: as mode says, and only these.',
);

export const ResponsesTool = object({ type: v.literal('function'), ...functionMembers });
export type ResponsesTool = v.InferOutput<typeof ResponsesTool>;

/** A tool of a request: a function, or one of another type, which is left out. */
const ResponsesSentTool = v.pipe(
  object({
    ...functionMembers,
    type: v.pipe(v.string(), v.minLength(1), v.maxLength(64)),
    name: v.nullish(v.string()),
  }),
  rule(({ type, name }) => {
    if (type !== 'function' || (name && TOOL_NAME.test(name))) return null;
    return name === null || name === undefined
      ? { code: 'missing_field', at: ['name'], message: 'is required' }
      : { code: 'invalid_value', at: ['name'], message: 'must be the name of a function' };
  }),
);
export type ResponsesSentTool = v.InferOutput<typeof ResponsesSentTool>;

/** Tells whether a tool of a request is a function. */
export const isFunctionTool = (tool: ResponsesSentTool): tool is ResponsesSentTool & ResponsesTool =>
  tool.type === 'function';

export const responsesTools = described(
  v.pipe(
    v.array(ResponsesSentTool),
    v.maxLength(MOST_TOOLS),
    rule((tools) => {
      const names = tools.map((tool) => (isFunctionTool(tool) ? tool.name : null));
      const repeated = names.findIndex((name, i) => name !== null && names.indexOf(name) < i);
      return repeated < 0 ? null : { code: 'invalid_value', at: [repeated, 'name'], message: 'repeats an earlier one' };
    }),
  ),
  'Functions. Tools of other types are left out, and the response header assay-warning names them.',
);

export const ResponsesNamedTool = object({ type: v.literal('function'), name: toolName });
export const ResponsesAllowedTools = object({
  type: v.literal('allowed_tools'),
  ...allowed(ResponsesNamedTool),
});
export const ResponsesToolChoice = described(
  v.union([v.picklist(['none', 'auto', 'required']), variant('type', [ResponsesNamedTool, ResponsesAllowedTools])]),
  'As tool_choice of a chat completion; the name of a function is beside its type.',
);

const argumentsJson = described(
  v.pipe(
    v.string(),
    rule((text) =>
      isObjectText(text) ? null : { code: 'invalid_value', message: 'must be the JSON text of an object, such as {}' },
    ),
  ),
  'The arguments as the JSON text of an object. An empty text counts as {}.',
);

/** The arguments of a call in a request: also as an object, as Ollama's API has them. */
export const argumentsText = v.union([argumentsJson, jsonObject]);

/** Returns the JSON text of the arguments of a call in a request. */
export function argumentsOf(sent: v.InferOutput<typeof argumentsText>): string {
  return typeof sent === 'string' ? sent || '{}' : JSON.stringify(sent);
}

/** A call of a tool, in an answer or in an assistant message of a later request. */
export const ChatToolCall = object({
  id: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  type: v.literal('function'),
  function: object({ name: toolName, arguments: argumentsJson }),
});
export type ChatToolCall = v.InferOutput<typeof ChatToolCall>;

/** A call in an assistant message of a request. */
const SentToolCall = object({
  ...ChatToolCall.entries,
  function: object({ name: toolName, arguments: argumentsText }),
});
export type SentToolCall = v.InferOutput<typeof SentToolCall>;
export const chatToolCalls = v.pipe(v.array(SentToolCall), v.maxLength(MOST_CALLS));

/** A part of a tool call in a streamed answer. Only the first part of a call has its id, type and name. */
export const ChatToolCallDelta = object({
  index: count,
  id: v.optional(v.string()),
  type: v.optional(v.literal('function')),
  function: object({ name: v.optional(v.string()), arguments: v.string() }),
});
export type ChatToolCallDelta = v.InferOutput<typeof ChatToolCallDelta>;

function isObjectText(text: string): boolean {
  if (text === '') return true;
  if (excessOf(text) !== null) return false;
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

import { at } from '../at.ts';
import type { ChatRequest, Tool, ToolUse } from '../backend.ts';
import type { AnswerShape, JsonSchema } from '../contract/answer-shape.ts';
import type { ChatMessage } from '../contract/conversation.ts';
import { type Fuel, sharedFuel } from '../grammar/fuel.ts';
import { type ChatCompletionRequest, chatChoice, continuedBy } from '../schema/chat-request.ts';
import { argumentsOf } from '../schema/chat-tools.ts';
import type { ContentPart, Message } from '../schema/message.ts';
import { reasoningOf } from '../schema/reasoning-fields.ts';
import { limitOf } from '../schema/sampling-fields.ts';
import { checkAnswerSchema } from '../tasks/check-answer-schema.ts';
import { toChatMessages } from './messages.ts';

/**
 * Converts a validated request to the `ChatRequest` that backends receive.
 *
 * @throws AssayError `invalid_type`, `invalid_value` or `unsupported_schema` if `checkAnswerSchema` refuses the schema
 *   of the answer or of a tool
 */
export function chatRequest(sent: ChatCompletionRequest): ChatRequest {
  return {
    ...given('model', sent.model),
    messages: chatMessages(sent.messages),
    ...given('maxTokens', limitOf(sent.max_completion_tokens ?? sent.max_tokens)),
    ...given('temperature', sent.temperature),
    ...given('topP', sent.top_p),
    ...given('seed', sent.seed),
    stop: typeof sent.stop === 'string' ? [sent.stop] : (sent.stop ?? []),
    presencePenalty: sent.presence_penalty ?? 0,
    frequencyPenalty: sent.frequency_penalty ?? 0,
    ...given('topLogprobs', sent.logprobs ? (sent.top_logprobs ?? 0) : null),
    format: chatFormat(responseFormat(sent.response_format), schemaPath(sent.response_format)),
    ...given('cacheSalt', sent.cache_salt),
    ...given('tools', tools(sent)),
    ...given('reasoning', reasoningOf(sent)),
    ...(continuedBy(sent) ? { continues: true } : {}),
  };
}

/**
 * Returns an object with this one member, to be spread into another; an empty object if the value is null or undefined.
 */
function given<K extends string, V>(name: K, value: V | null | undefined): { [key in K]?: V } {
  // The cast keeps the literal name, for which TypeScript infers only an index signature.
  return value === null || value === undefined ? {} : ({ [name]: value } as { [key in K]?: V });
}

function chatMessages(sent: ChatCompletionRequest['messages']): ChatMessage[] {
  const plain = toChatMessages(sent.map(message));
  return plain.map((one, i) => {
    const { tool_calls, tool_call_id, role } = at(sent, i);
    if (role === 'tool') return { ...one, role, ...given('toolCallId', tool_call_id) };
    if (!tool_calls?.length) return one;
    const toolCalls = tool_calls.map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: argumentsOf(text),
    }));
    return { ...one, toolCalls };
  });
}

/**
 * Returns a message without its tool fields. A tool's output becomes a user message here, because both have the same
 * content parts; `chatMessages` restores its role.
 */
function message({ role, content, name }: ChatCompletionRequest['messages'][number]): Message {
  const plain = typeof content === 'string' ? content : (content ?? []).flatMap(plainPart);
  return {
    role: role === 'tool' ? 'user' : role,
    content: plain.length > 0 ? plain : '',
    ...given('name', name),
  };
}

type SentPart = Exclude<ChatCompletionRequest['messages'][number]['content'], string | null | undefined>[number];

/** Converts a part that only chats have; reasoning is omitted. */
function plainPart(part: SentPart): ContentPart[] {
  if (part.type === 'thinking' || part.type === 'reasoning') return [];
  if (part.type === 'refusal') return [{ type: 'text', text: part.refusal }];
  if (part.type !== 'image_url') return [part];
  const { url, detail } = part.image_url;
  return [{ type: 'image_url', image_url: { url, ...given('detail', detail) } }];
}

function tools({ tools, tool_choice, parallel_tool_calls }: ChatCompletionRequest): ToolUse | null {
  const functions = (tools ?? []).map((tool) => tool.function);
  const choice = chatChoice(tool_choice);
  return toolUse(functions, { choice, parallel: parallel_tool_calls, param: (i) => `tools[${i}].function.parameters` });
}

type Sent = ChatCompletionRequest['response_format'];
type Schema = { readonly [key: string]: unknown };
type Format =
  | { type: 'text' }
  | { type: 'json_object'; schema?: Schema | null | undefined }
  | { type: 'json_schema'; schema: Schema };

/**
 * Returns the response format as the Responses API has it, with the members of `json_schema` directly beside `type`;
 * null if none was sent.
 */
function responseFormat(sent: Sent): Format | null {
  return sent?.type === 'json_schema' ? { type: 'json_schema', ...sent.json_schema } : (sent ?? null);
}

const schemaPath = (sent: Sent) => `response_format.${sent?.type === 'json_object' ? '' : 'json_schema.'}schema`;

/**
 * Converts a response format, flat as in the Responses API, to that of a `ChatRequest`; without one, the answer is
 * text.
 *
 * @param param path of the format's schema in the request, for errors
 * @throws AssayError `invalid_type`, `invalid_value` or `unsupported_schema` if `checkAnswerSchema` refuses the schema
 */
export function chatFormat(sent: Format | null | undefined, param: string): ChatRequest['format'] {
  if (!sent || sent.type === 'text') return { type: 'text' };
  const { schema } = sent;
  const shape: AnswerShape = schema ? checkAnswerSchema({ schema, param, jsonSchemaOnly: true }) : { kind: 'any' };
  return { type: 'json', shape };
}

/** Describes a tool (a function) as sent to Chat Completions and to the Responses API. */
interface SentFunction {
  name: string;
  description?: string | null | undefined;
  parameters?: { readonly [key: string]: unknown } | null | undefined;
}

interface SentUse {
  choice: ToolUse['choice'] | 'none' | { names: readonly string[]; mode: 'auto' | 'required' } | null | undefined;
  parallel: boolean | null | undefined;
  /** Returns the path of the parameters of the function at `index` in the request, for errors. */
  param(index: number): string;
}

/**
 * Returns the tools that the model may call and how; null if there are none, or if the choice is `none`. By default the
 * model decides (`auto`), and parallel calls are allowed.
 *
 * @throws AssayError `invalid_type`, `invalid_value` or `unsupported_schema` if `checkAnswerSchema` refuses the
 *   parameters of a function
 */
export function toolUse(functions: readonly SentFunction[], { choice, parallel, param }: SentUse): ToolUse | null {
  if (functions.length === 0 || choice === 'none') return null;
  const fuel = sharedFuel();
  const tools = functions.map((one, i) => toolOf(one, param(i), fuel));
  if (!choice || typeof choice === 'string') return { tools, choice: choice ?? 'auto', parallel: parallel ?? true };
  // As in OpenAI's API, a named function is called exactly once.
  if ('name' in choice) return { tools, choice: { name: choice.name }, parallel: false };
  const { names, mode } = choice;
  return { tools: tools.filter(({ name }) => names.includes(name)), choice: mode, parallel: parallel ?? true };
}

function toolOf({ name, description, parameters }: SentFunction, param: string, fuel: Fuel): Tool {
  const schema = closedSchema(parameters ?? { type: 'object', properties: {} });
  checkAnswerSchema({ schema, param, jsonSchemaOnly: true, fuel });
  // The cast is safe, because the schema was parsed from JSON.
  return { name, ...(description ? { description } : {}), parameters: schema as JsonSchema };
}

/**
 * Forbids undeclared parameters: sets `additionalProperties` to false at the root of a schema that lists properties but
 * does not say whether others are allowed. A root with `allOf`, `anyOf`, `oneOf` or `$ref` stays as it is.
 */
function closedSchema(schema: { readonly [key: string]: unknown }): { readonly [key: string]: unknown } {
  const open = ['additionalProperties', 'allOf', 'anyOf', 'oneOf', '$ref'].some((name) => name in schema);
  return open || !('properties' in schema) ? schema : { ...schema, additionalProperties: false };
}

import { at } from '../at.ts';
import type { ChatRequest } from '../backend.ts';
import { textMessage } from '../chat/messages.ts';
import { chatFormat, toolUse } from '../chat/request.ts';
import type { ChatMessage, Part, ToolCall } from '../contract/conversation.ts';
import { mediaPart } from '../questions/media.ts';
import { argumentsOf, isFunctionTool } from '../schema/chat-tools.ts';
import { reasoningOf } from '../schema/reasoning-fields.ts';
import {
  type ResponsesItem,
  type ResponsesPart,
  type ResponsesRequest,
  responsesChoice,
} from '../schema/responses-request.ts';
import { limitOf } from '../schema/sampling-fields.ts';

const LOGPROBS = 'message.output_text.logprobs';

/**
 * Converts a validated request to the `ChatRequest` that backends receive.
 *
 * @throws AssayError `invalid_type`, `invalid_value` or `unsupported_schema` if `checkAnswerSchema` refuses the schema
 *   of the answer or of a tool
 */
export function responsesRequest(sent: ResponsesRequest): ChatRequest {
  const { model, instructions, max_output_tokens, temperature, top_p, top_logprobs, include, text } = sent;
  const { tools, tool_choice: choice, parallel_tool_calls: parallel } = sent;
  const functions = (tools ?? []).flatMap((tool, i) => (isFunctionTool(tool) ? [{ tool, i }] : []));
  const use = toolUse(
    functions.map(({ tool }) => tool),
    { choice: responsesChoice(choice), parallel, param: (i) => `tools[${at(functions, i).i}].parameters` },
  );
  const reasoning = reasoningOf(sent);
  const maxTokens = limitOf(max_output_tokens);
  const logprobs = top_logprobs ?? (include?.includes(LOGPROBS) ? 0 : null);
  return {
    ...(model ? { model } : {}),
    messages: [...(instructions ? [textMessage('system', instructions)] : []), ...messagesOf(sent.input)],
    ...(maxTokens ? { maxTokens } : {}),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof top_p === 'number' ? { topP: top_p } : {}),
    ...(logprobs === null ? {} : { topLogprobs: logprobs }),
    stop: [],
    presencePenalty: 0,
    frequencyPenalty: 0,
    format: chatFormat(text?.format, 'text.format.schema'),
    ...(sent.cache_salt ? { cacheSalt: sent.cache_salt } : {}),
    ...(use ? { tools: use } : {}),
    ...(reasoning ? { reasoning } : {}),
  };
}

function messagesOf(input: ResponsesRequest['input']): ChatMessage[] {
  if (typeof input === 'string') return [textMessage('user', input)];
  const messages: ChatMessage[] = [];
  for (const [i, item] of input.entries()) {
    const last = messages.at(-1);
    if (item.type === 'reasoning') continue;
    if (item.type !== 'function_call') messages.push(messageOf(item, `input[${i}]`));
    // The tool calls of an answer belong to the same message as the text before them.
    else if (last?.role === 'assistant') last.toolCalls = [...(last.toolCalls ?? []), callOf(item)];
    else messages.push({ role: 'assistant', parts: [], toolCalls: [callOf(item)] });
  }
  return messages;
}

/** Converts a function call. The schema has ensured that its members are present (`REQUIRED_MEMBERS`). */
function callOf({ call_id, name, arguments: text }: ResponsesItem): ToolCall {
  return { id: call_id ?? '', name: name ?? '', arguments: argumentsOf(text ?? '') };
}

function messageOf({ type, role, content, output, call_id }: ResponsesItem, path: string): ChatMessage {
  if (type === 'function_call_output') {
    return { role: 'tool', parts: partsOf(output ?? '', `${path}.output`), toolCallId: call_id ?? '' };
  }
  return { role: role === 'developer' ? 'system' : role!, parts: partsOf(content ?? '', `${path}.content`) };
}

function partsOf(content: string | readonly ResponsesPart[], path: string): Part[] {
  const parts = typeof content === 'string' ? [] : content.flatMap((part, i) => partOf(part, `${path}[${i}]`));
  // A list may be empty, or contain only reasoning; then the message has an empty text, as a chat's would.
  return parts.length > 0 ? parts : [{ type: 'text', text: typeof content === 'string' ? content : '' }];
}

function partOf(part: ResponsesPart, path: string): Part[] {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      return [{ type: 'text', text: part.text }];
    case 'refusal':
      return [{ type: 'text', text: part.refusal }];
    case 'input_image':
    case 'input_audio':
      return [mediaPart(part, path)];
    case 'reasoning_text':
      return [];
  }
}

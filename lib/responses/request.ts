import type { ChatRequest } from '../backend.ts';
import { chatFormat } from '../chat/request.ts';
import type { ChatMessage, Part } from '../conversation.ts';
import { mediaPart } from '../questions/media.ts';
import type { ResponsesItem, ResponsesPart, ResponsesRequest } from '../schema/responses-request.ts';

const LOGPROBS = 'message.output_text.logprobs';

/** Converts a valid request to the form of the backends. Throws as `checkAnswerSchema` for a `json_schema`. */
export function responsesRequest(sent: ResponsesRequest): ChatRequest {
  const { model, instructions, max_output_tokens, temperature, top_p, top_logprobs, include, text } = sent;
  const logprobs = top_logprobs ?? (include?.includes(LOGPROBS) ? 0 : null);
  return {
    ...(model ? { model } : {}),
    messages: [...(instructions ? [said('system', instructions)] : []), ...messagesOf(sent.input)],
    ...(max_output_tokens ? { maxTokens: max_output_tokens } : {}),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof top_p === 'number' ? { topP: top_p } : {}),
    ...(logprobs === null ? {} : { topLogprobs: logprobs }),
    stop: [],
    presencePenalty: 0,
    frequencyPenalty: 0,
    format: chatFormat(text?.format, 'text.format.schema'),
  };
}

function messagesOf(input: ResponsesRequest['input']): ChatMessage[] {
  if (typeof input === 'string') return [said('user', input)];
  return input.flatMap((item, i) => (item.type === 'reasoning' ? [] : [messageOf(item, `input[${i}].content`)]));
}

function messageOf({ role, content }: ResponsesItem, path: string): ChatMessage {
  const sender = role === 'developer' ? 'system' : role!;
  if (typeof content === 'string') return said(sender, content);
  return { role: sender, parts: content!.flatMap((part, i) => partOf(part, `${path}[${i}]`)) };
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

function said(role: ChatMessage['role'], text: string): ChatMessage {
  return { role, parts: [{ type: 'text', text }] };
}

import { at } from '../../../lib/at.ts';
import type { ChatMessage } from '../../../lib/contract/conversation.ts';
import type { AnsweredCall, TemplateMessage } from '../template/template-message.ts';

/**
 * Adds to each template message the calls of the chat message at the same index, and to each tool's output the call
 * that it answers. Calls get new ids that number them in the conversation: all templates accept these (Mistral's
 * require nine letters and digits), and the same conversation always gives the same prompt. The output of a tool
 * belongs to the latest call with its id.
 */
export function withToolFields(
  templateMessages: readonly TemplateMessage[],
  messages: readonly ChatMessage[],
): TemplateMessage[] {
  const latest = new Map<string, AnsweredCall>();
  let count = 0;
  return templateMessages.map((message, i) => {
    const { toolCalls, toolCallId } = at(messages, i);
    if (toolCallId !== undefined) {
      const answers = latest.get(toolCallId);
      return answers ? { ...message, answers } : message;
    }
    if (!toolCalls) return message;
    const placed = toolCalls.map((call) => {
      const id = callId(count++);
      latest.set(call.id, { id, name: call.name });
      return { ...call, id };
    });
    return { ...message, toolCalls: placed };
  });
}

/** Returns the id for the call with this index in the conversation, such as `call00002`. */
export function callId(place: number): string {
  return `call${String(place).padStart(5, '0')}`;
}

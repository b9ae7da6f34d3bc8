import { at } from '../../../lib/at.ts';
import type { ToolCall } from '../../../lib/contract/conversation.ts';
import type { TemplateMessage } from '../template/template-message.ts';
import { guardedArguments } from './guarded-text.ts';
import type { ToolFormat } from './tool-format.ts';

/**
 * Changes messages with calls so that the template accepts and writes them: one call in each message if it allows no
 * more, no text before the calls if it cannot write any, and the calls as content if it does not write them itself.
 */
export function fitCalls(messages: readonly TemplateMessage[], format: ToolFormat | null): readonly TemplateMessage[] {
  const single = format?.separator === null ? oneCallEach(messages) : messages;
  return single.map((message) => {
    const { toolCalls } = message;
    if (!toolCalls || format?.textBefore) return message;
    const callText = format?.asContent ? { callText: written(toolCalls, format) } : {};
    return { ...message, content: '', ...callText };
  });
}

/** Returns calls as text, in the format in which the model writes them. */
function written(calls: readonly ToolCall[], { head, between, separator, rest }: ToolFormat): string {
  return head + calls.map((call) => call.name + between + guardedArguments(call)).join(separator ?? '') + rest;
}

/**
 * Gives each call a separate message, followed by its outputs, for templates that accept only one call per message
 * (Llama 3).
 */
function oneCallEach(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const spread: TemplateMessage[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = at(messages, i);
    const { toolCalls = [] } = message;
    if (toolCalls.length < 2) {
      spread.push(message);
      continue;
    }
    const outputs: TemplateMessage[] = [];
    while (messages[i + 1]?.role === 'tool') outputs.push(at(messages, ++i));
    for (const [j, call] of toolCalls.entries()) {
      spread.push({ ...message, content: j === 0 ? message.content : '', toolCalls: [call] });
      spread.push(...outputs.filter(({ answers }) => answers?.id === call.id));
    }
    spread.push(...outputs.filter(({ answers }) => !toolCalls.some(({ id }) => id === answers?.id)));
  }
  return spread;
}

import type { Finding } from '../validation/rules.ts';
import type { ChatToolCall } from './chat-tools.ts';

// Rules about tools that concern several members of a message or request (docs/interface.md, M-26).

interface MessageFields {
  role: string;
  content?: string | readonly { type: string }[] | null | undefined;
  tool_calls?: readonly ChatToolCall[] | null | undefined;
  tool_call_id?: string | null | undefined;
}

/**
 * Checks the tool fields of a message against its role: only an assistant may have `tool_calls`, and a tool's output
 * must be text with a `tool_call_id`.
 */
export function toolFields({ role, content, tool_calls, tool_call_id }: MessageFields): Finding | null {
  if (role !== 'assistant' && tool_calls?.length) {
    return { code: 'invalid_value', at: ['tool_calls'], message: 'is for messages with the role assistant' };
  }
  if (role !== 'tool') return null;
  if (typeof tool_call_id !== 'string') {
    return { code: 'missing_field', at: ['tool_call_id'], message: 'is required in a message with the role tool' };
  }
  const other = typeof content === 'string' ? -1 : (content ?? []).findIndex(({ type }) => type !== 'text');
  if (other < 0) return null;
  return { code: 'invalid_value', at: ['content', other, 'type'], message: 'must be text in the output of a tool' };
}

interface ToolUseFields {
  names: readonly string[];
  choice?: string | { name: string } | null | undefined;
  format?: { type: string } | null | undefined;
}

/**
 * Checks that the tool choice names one of the tools, and that tools are not combined with a response format other than
 * text.
 *
 * @param paths paths of the choice's name and of the format in the request, for errors
 */
export function toolUseFields(
  { names, choice, format }: ToolUseFields,
  paths: { name: readonly string[]; format: readonly string[] },
): Finding | null {
  if (names.length === 0) {
    const calls = choice && choice !== 'none' && choice !== 'auto';
    return calls ? { code: 'invalid_value', at: ['tool_choice'], message: 'needs tools' } : null;
  }
  if (choice && typeof choice === 'object' && !names.includes(choice.name)) {
    return { code: 'invalid_value', at: paths.name, message: 'must be one of the tools' };
  }
  if (choice === 'none' || !format || format.type === 'text') return null;
  return {
    code: 'unsupported_parameter',
    at: paths.format,
    message: 'must be text where the model may call tools. Set tool_choice to none, or give the form to a tool',
  };
}

/** Checks that each output of a tool follows the call that it answers. */
export function answeredCalls({ messages }: { messages: readonly MessageFields[] }): Finding | null {
  const called = new Set<string>();
  for (const [i, { role, tool_calls, tool_call_id }] of messages.entries()) {
    for (const { id } of tool_calls ?? []) called.add(id);
    if (role === 'tool' && !called.has(tool_call_id ?? '')) {
      const message = 'must be the id of a tool call in an earlier assistant message';
      return { code: 'invalid_value', at: ['messages', i, 'tool_call_id'], message };
    }
  }
  return null;
}

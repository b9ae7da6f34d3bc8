import type { Finding } from '../validation/rules.ts';
import type { SentToolCall } from './chat-tools.ts';

// Rules about tools that concern several members of a message or request (docs/model-api.md, M-26).

interface MessageFields {
  role: string;
  content?: string | readonly { type: string }[] | null | undefined;
  tool_calls?: readonly SentToolCall[] | null | undefined;
  tool_call_id?: string | null | undefined;
}

/**
 * Returns the first issue of a message's tool fields, null if there is none. Only an assistant may have `tool_calls`,
 * and the message of a `tool` must be text with a `tool_call_id`.
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
  choice?: string | { name: string } | { names: readonly string[] } | null | undefined;
}

/**
 * Returns the issue of a request's tool choice, null if there is none. It must name one of the tools.
 *
 * @param namePath path of the choice's name in the request, for errors
 */
export function toolUseFields({ names, choice }: ToolUseFields, namePath: readonly string[]): Finding | null {
  if (names.length === 0) {
    const calls = choice && choice !== 'none' && choice !== 'auto';
    return calls ? { code: 'invalid_value', at: ['tool_choice'], message: 'needs tools' } : null;
  }
  if (!choice || typeof choice !== 'object') return null;
  const chosen = 'name' in choice ? [choice.name] : choice.names;
  const unknown = chosen.find((name) => !names.includes(name));
  if (unknown === undefined) return null;
  const at = 'name' in choice ? namePath : ['tool_choice'];
  return { code: 'invalid_value', at, message: `must be one of the tools, not ${JSON.stringify(unknown)}` };
}

/**
 * Returns the issue of the first `tool` message whose `tool_call_id` no earlier message has called; null if there is
 * none.
 */
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

import type { ReasoningFormat } from '../reasoning-format.ts';
import { TemplateError } from '../sandboxed-jinja.ts';
import { callId } from './tool-messages.ts';

/** Describes how a chat template writes tool calls, as found by rendering. */
export interface ToolFormat {
  /** Text that begins a call, from the start of the answer to the name of the tool. */
  head: string;
  /** Text between the tool's name and the arguments, which are the JSON text of an object. */
  between: string;
  /** Text after the arguments of an only call: the end of the call and of the answer, and what follows. */
  rest: string;
  /** Text from the end of a call's arguments to the name of the next call; null if an answer can make only one call. */
  separator: string | null;
  /** True if an answer may contain text before its calls. */
  textBefore: boolean;
}

/** Renders messages and tools, given in the form that templates read. Throws `TemplateError`. */
export type RenderTools = (messages: readonly object[], tools: readonly object[], generate: boolean) => string;

const TOOL = 'probe_tool';
const [FIRST, SECOND, TEXT] = ['probe_first', 'probe_second', 'probe text'];
const ARGUMENTS = /\{\s*"probe_key":\s*"probe_value"\s*\}/u;

const tools = [
  {
    type: 'function',
    function: {
      name: TOOL,
      description: 'Probes.',
      parameters: { type: 'object', properties: { probe_key: { type: 'string' } }, required: ['probe_key'] },
    },
  },
];
const question = { role: 'user', content: 'probe question' };

/**
 * Returns a conversation in which the assistant calls the named tools, and the tools answer. All calls have the same
 * id, because some templates write ids (Mistral), and two calls should differ only in their names.
 */
function calls(names: readonly string[], content = ''): object[] {
  const id = callId(0);
  const tool_calls = names.map((name) => ({
    id,
    type: 'function',
    function: { name, arguments: { probe_key: 'probe_value' } },
  }));
  const outputs = names.map((name) => ({ role: 'tool', name, tool_call_id: id, content: 'probe output' }));
  return [question, { role: 'assistant', content, tool_calls }, ...outputs];
}

/**
 * Finds out how a template writes tool calls. Returns null if it does not show tools to the model, or writes calls in a
 * form that the grammars here do not support (arguments that are not JSON, or channels as in GPT-OSS). Throws a
 * `TemplateError` if a limit of time or memory ends the template.
 */
export function toolFormat(render: RenderTools, reasoning: ReasoningFormat): ToolFormat | null {
  const rendered = (messages: readonly object[], generate = false) => {
    try {
      return render(messages, tools, generate);
    } catch (error) {
      if (error instanceof TemplateError && !error.ofLimits) return null;
      throw error;
    }
  };
  // Only the channel format of reasoning also has a mark for answers.
  if (reasoning.answer !== undefined) return null;
  const prompt = rendered([question], true);
  const one = rendered(calls([FIRST]));
  if (!prompt?.includes(TOOL) || !one) return null;
  const begin = beforeReasoning(prompt, reasoning);
  const first = one.startsWith(begin) ? partsOf(one, begin.length, FIRST) : null;
  if (!first) return null;
  const head = withoutReasoning(first.head, reasoning);
  if (head.trim() === '') return null;
  const withText = rendered(calls([FIRST], TEXT)) ?? '';
  const textAt = withText.indexOf(TEXT);
  return {
    head,
    between: first.between,
    rest: first.rest,
    separator: separatorOf(rendered(calls([FIRST, SECOND])), one, first),
    textBefore: textAt >= 0 && textAt < withText.indexOf(FIRST),
  };
}

interface CallParts {
  head: string;
  between: string;
  rest: string;
}

/**
 * Returns the parts of the first call after index `from`; null if the tool's name is not followed by arguments as a
 * JSON object.
 */
function partsOf(rendered: string, from: number, name: string): CallParts | null {
  const nameAt = rendered.indexOf(name, from);
  if (nameAt < 0) return null;
  const afterName = rendered.slice(nameAt + name.length);
  const match = ARGUMENTS.exec(afterName);
  if (!match) return null;
  return {
    head: rendered.slice(from, nameAt),
    between: afterName.slice(0, match.index),
    rest: afterName.slice(match.index + match[0].length),
  };
}

/**
 * Returns the text between the arguments of a call and the name of the next; null if the template cannot write two
 * calls.
 */
function separatorOf(two: string | null, one: string, { between }: CallParts): string | null {
  const firstAt = one.indexOf(FIRST);
  if (!two?.startsWith(one.slice(0, firstAt))) return null;
  const parts = partsOf(two, firstAt, FIRST);
  const secondAt = parts?.rest.indexOf(SECOND) ?? -1;
  if (!parts || secondAt < 0) return null;
  const second = partsOf(parts.rest, secondAt, SECOND);
  return second?.between === between ? parts.rest.slice(0, secondAt) : null;
}

/** Returns a prompt without a reasoning block that it opens at its end. */
function beforeReasoning(prompt: string, { open, close }: ReasoningFormat): string {
  const opened = prompt.lastIndexOf(open);
  return opened > prompt.lastIndexOf(close) ? prompt.slice(0, opened) : prompt;
}

/** Removes an empty reasoning block from the beginning of a call. */
function withoutReasoning(head: string, { open, close }: ReasoningFormat): string {
  const end = head.indexOf(close);
  return head.trimStart().startsWith(open) && end >= 0 ? head.slice(end + close.length).trimStart() : head;
}

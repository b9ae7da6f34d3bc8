import { at } from '../../../lib/at.ts';
import type { ChatMessage } from '../../../lib/contract/conversation.ts';
import type { Tags } from '../../../lib/grammar/tagged-object.ts';
import { escapePattern } from '../../../lib/grammar/text/pattern.ts';
import type { ReasoningFormat } from '../output/reasoning-format.ts';
import { TemplateError } from '../template/sandboxed-jinja.ts';
import type { AnsweredCall, TemplateMessage } from '../template/template-message.ts';

/** Describes how a chat template writes tool calls, as found by rendering. */
export interface ToolFormat {
  /** Text that begins a call, from the start of the answer to the name of the tool. */
  head: string;
  /** Text between the tool's name and the arguments, which are the JSON text of an object unless there are tags. */
  between: string;
  /** Tags between which the template writes each argument; absent if it writes JSON. */
  tags?: Tags;
  /**
   * Text after the arguments if the answer has a single call: the end of the call and of the answer, and all that the
   * template writes after them.
   */
  rest: string;
  /** Text from the end of a call's arguments to the name of the next call; null if an answer can make only one call. */
  separator: string | null;
  /** True if an answer may contain text before its calls. */
  textBefore: boolean;
  /** True if the template does not write the calls of earlier messages. The calls are then passed to it as content. */
  asContent?: true;
}

/**
 * Formats of calls that a template asks the model for in a sentence, but does not write itself: each with that
 * sentence. Source for Granite 3.3: its chat template, and the parsers of llama.cpp and vLLM for its calls.
 */
const DECLARED: readonly [request: string, format: ToolFormat][] = [
  [
    'respond only with <|tool_call|> followed by a JSON list of tools used',
    {
      head: '<|tool_call|>[{"name": "',
      between: '", "arguments": ',
      rest: '}]',
      separator: '}, {"name": "',
      textBefore: false,
      asContent: true,
    },
  ],
];

/** Returns the format of calls that a prompt with tools asks for; null if it asks for none that is known. */
function declaredFormat(prompt: string): ToolFormat | null {
  return DECLARED.find(([request]) => prompt.includes(request))?.[1] ?? null;
}

/**
 * Renders a template with these values of its variables `messages`, `tools` and `add_generation_prompt` (`generate`).
 * Throws `TemplateError` if the template fails, refuses the messages or exceeds a limit.
 */
export type RenderTools = (messages: readonly object[], tools: readonly object[], generate: boolean) => string;

const TOOL = 'probe_tool';
const [FIRST, SECOND, TEXT] = ['probe_first', 'probe_second', 'probe text'];
const ARGUMENTS = { probe_key: 'probe_value' };
const JSON_ARGUMENTS = /\{\s*"probe_key":\s*"probe_value"\s*\}/u;
/** Two arguments. A call with both shows what the template writes between arguments. */
const MORE_ARGUMENTS = { ...ARGUMENTS, probe_other: 'probe_last' };

const tools = [
  {
    type: 'function',
    function: {
      name: TOOL,
      description: 'Probes.',
      parameters: {
        type: 'object',
        properties: { probe_key: { type: 'string', description: 'Probes.' } },
        required: ['probe_key'],
      },
    },
  },
];
const question = { role: 'user', content: 'probe question' };

/**
 * Returns a conversation in which the assistant calls the named tools, and the tools answer. All calls have the same
 * id, because some templates write ids (Mistral), and two calls should differ only in their names.
 */
function calls(names: readonly string[], content = '', args: object = ARGUMENTS): object[] {
  const id = callId(0);
  const tool_calls = names.map((name) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  }));
  const outputs = names.map((name) => ({ role: 'tool', name, tool_call_id: id, content: 'probe output' }));
  return [question, { role: 'assistant', content, tool_calls }, ...outputs];
}

/**
 * Finds out how a template writes tool calls. Returns null if it does not show tools to the model, or writes calls in a
 * form that `callGrammar` does not support (arguments that are neither JSON nor between tags). Throws `TemplateError`
 * if a limit of time or memory ends the template.
 */
export function findToolFormat(render: RenderTools, reasoning: ReasoningFormat): ToolFormat | null {
  const rendered = (messages: readonly object[], generate = false) => {
    try {
      return render(messages, tools, generate);
    } catch (error) {
      if (error instanceof TemplateError && !error.ofLimits) return null;
      throw error;
    }
  };
  const prompt = rendered([question], true);
  const one = rendered(calls([FIRST]));
  if (!prompt?.includes(TOOL) || !one) return null;
  if (!one.includes(FIRST)) return declaredFormat(prompt);
  const answerAt = answerStart(one, beforeReasoning(prompt, reasoning), rendered([question]) ?? '');
  if (answerAt === null) return null;
  const json = partsOf(one, { from: answerAt, name: FIRST, args: JSON_ARGUMENTS });
  const tags = json ? null : findTags(rendered(calls([FIRST], '', MORE_ARGUMENTS)) ?? '', MORE_ARGUMENTS);
  const args = tags
    ? new RegExp(escapePattern(`${tags.open}probe_key${tags.named}probe_value${tags.close}`), 'u')
    : JSON_ARGUMENTS;
  const first = json ?? (tags && partsOf(one, { from: answerAt, name: FIRST, args }));
  if (!first) return null;
  const head = withoutReasoning(first.head, reasoning);
  if (head.trim() === '') return null;
  const withText = rendered(calls([FIRST], TEXT)) ?? '';
  const textAt = withText.indexOf(TEXT);
  return {
    head,
    between: first.between,
    ...(tags ? { tags } : {}),
    rest: first.rest,
    separator: separatorOf(rendered(calls([FIRST, SECOND])), one, { ...first, args }),
    textBefore: textAt >= 0 && textAt < withText.indexOf(FIRST),
  };
}

/**
 * Returns the index at which the answer begins in a conversation with a call: after the prompt. If the template moves
 * an instruction from the end of the prompt (Command R+), it is after the last generation prompt before the call.
 * Returns null if neither is found.
 *
 * @param waiting the prompt without its generation prompt
 */
function answerStart(conversation: string, prompt: string, waiting: string): number | null {
  if (conversation.startsWith(prompt)) return prompt.length;
  const mark = prompt.startsWith(waiting) ? prompt.slice(waiting.length) : '';
  const at = mark === '' ? -1 : conversation.lastIndexOf(mark, conversation.indexOf(FIRST));
  return at < 0 ? null : at + mark.length;
}

interface CallParts {
  head: string;
  between: string;
  rest: string;
}

/** Returns the parts of the first call after index `from`; null if `args` do not follow the tool's name. */
function partsOf(
  rendered: string,
  { from, name, args }: { from: number; name: string; args: RegExp },
): CallParts | null {
  const nameAt = rendered.indexOf(name, from);
  if (nameAt < 0) return null;
  const afterName = rendered.slice(nameAt + name.length);
  const match = args.exec(afterName);
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
function separatorOf(two: string | null, one: string, { between, args }: CallParts & { args: RegExp }): string | null {
  const firstAt = one.indexOf(FIRST);
  if (!two?.startsWith(one.slice(0, firstAt))) return null;
  const parts = partsOf(two, { from: firstAt, name: FIRST, args });
  const secondAt = parts?.rest.indexOf(SECOND) ?? -1;
  if (!parts || secondAt < 0) return null;
  const second = partsOf(parts.rest, { from: secondAt, name: SECOND, args });
  return second?.between === between ? parts.rest.slice(0, secondAt) : null;
}

/** Removes a reasoning block that a prompt opens at its end. */
function beforeReasoning(prompt: string, { open, close }: ReasoningFormat): string {
  const opened = prompt.lastIndexOf(open);
  return opened > prompt.lastIndexOf(close) ? prompt.slice(0, opened) : prompt;
}

/** Removes an empty reasoning block from the beginning of a call. */
function withoutReasoning(head: string, { open, close }: ReasoningFormat): string {
  const end = head.indexOf(close);
  return head.trimStart().startsWith(open) && end >= 0 ? head.slice(end + close.length).trimStart() : head;
}

/**
 * Finds the tags between which a template writes the arguments of a call, as Qwen3-Coder and Seed-OSS do:
 * `<parameter=city>`, the value, `</parameter>`. Returns null if it writes them in another form.
 *
 * @param rendered prompt of a conversation with one call
 * @param args the call's two arguments, which are strings
 */
function findTags(rendered: string, args: Readonly<Record<string, string>>): Tags | null {
  const texts = Object.entries(args).flat();
  const places = texts.map((text) => rendered.lastIndexOf(text));
  if (places.includes(-1) || places.some((place, i) => i > 0 && place < (places[i - 1] ?? 0))) return null;
  const after = texts.map((text, i) => rendered.slice((places[i] ?? 0) + text.length, places[i + 1]));
  const [named = '', between = '', namedAgain, rest = ''] = after;
  // The last tag before an argument's name belongs to that argument.
  const openAt = between.lastIndexOf('<');
  const [close, open] = [between.slice(0, openAt), between.slice(openAt)];
  const closing = /^\s*<\/[^<>]+>\s*$/u.test(close) && close.includes('\n');
  const fits = closing && named === namedAgain && rest.startsWith(close) && rest.startsWith('</', close.length);
  return fits && named.includes('>') ? { open, named, close } : null;
}

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
function callId(place: number): string {
  return `call${String(place).padStart(5, '0')}`;
}

import { append } from '../../../lib/append.ts';
import { at } from '../../../lib/at.ts';
import { atOnce } from '../../../lib/at-once.ts';
import type { Tool } from '../../../lib/backend.ts';
import type { Json, JsonSchema } from '../../../lib/contract/answer-shape.ts';
import type { ToolCall } from '../../../lib/contract/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { isObject } from '../../../lib/json/property.ts';
import { type ReasoningFormat, reasoningFormat } from '../output/reasoning-format.ts';
import type { MediaMark, Segment } from '../segment.ts';
import { guardedArguments, templateTools } from '../tools/guarded-text.ts';
import type { ToolFormat } from '../tools/tool-format.ts';
import { findToolFormat, type RenderTools } from '../tools/tool-format.ts';
import { markParts, splitMarked } from './marked-texts.ts';
import { compileJinja, type JinjaLimits, TemplateError } from './sandboxed-jinja.ts';
import { fitMessages, isToolUse, type TemplateMessage, type TemplateTraits } from './template-message.ts';

export interface ChatTemplate {
  readonly traits: TemplateTraits;
  /** True if the template shows that the model can reason before it answers. */
  readonly thinks: boolean;
  /** Marks that the model writes around its reasoning. */
  readonly reasoning: ReasoningFormat;
  /**
   * Texts that begin another message, used as stop strings where no token ends an answer; empty for a model with a chat
   * template.
   */
  readonly stops: readonly string[];
  /**
   * Text that the template writes between an answer and the next message, usually from the token that ends an answer
   * on; empty if there is none.
   */
  readonly afterAnswer: string;
  /**
   * Returns how the template writes tool calls; null if it does not support tools. The first call determines it by
   * rendering. Throws `engine_failed` if the template exceeds a limit of time or memory.
   */
  tools(): ToolFormat | null;
  /**
   * Renders the prompt up to the model's answer. Each message's text becomes a separate `user` segment, in order;
   * reasoning of earlier answers is omitted. Throws `engine_failed` if the template fails, and `unsupported_parameter`
   * if it refuses a conversation with tools. Only a template that supports tools (`tools()`) accepts tools, calls and
   * their outputs. Yields while the template works, so that other work may run.
   */
  render(messages: readonly TemplateMessage[], options?: RenderOptions): Generator<void, Segment[]>;
  /**
   * Renders a conversation as transformers does (`apply_chat_template` with `add_generation_prompt` and without
   * thinking), with the messages' texts inside the template's own text. Throws `engine_failed` if the template fails.
   */
  renderPlain(messages: readonly { role: 'system' | 'user'; content: string }[]): string;
}

export interface RenderOptions {
  /**
   * False to close the reasoning block before the model can begin it; true to begin one where the template has to be
   * asked; absent: as the template has it.
   */
  thinking?: boolean | undefined;
  /** Level of effort, for a template that has levels. */
  effort?: string | undefined;
  /** True to end the prompt in the text of the last message, which is an assistant's. */
  continues?: boolean | undefined;
  /** Mark that the template writes for an image or a recording; absent if the model reads none. */
  media?: MediaMark | undefined;
  /** Tools to show to the model. */
  tools?: readonly Tool[] | undefined;
}

/** Template for a model that has no chat template. */
export const PLAIN_TEMPLATE =
  "{% for m in messages %}{{ m.role | capitalize + ': ' + m.content + '\\n\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

/**
 * Defaults of `tools` and `documents`: null instead of undefined, as in transformers (`apply_chat_template`), because
 * some templates test `is none`, which is false for an undefined variable.
 */
const NO_TOOLS_OR_DOCUMENTS = { tools: null, documents: null };

/**
 * Describes the input that a template requires: whether a message must be a list of parts (`inParts`), and the value of
 * `tools` for a conversation without tools (`noTools`).
 */
interface TemplateInput {
  inParts: boolean;
  noTools: null | readonly [];
}

/**
 * Inputs to try, in this order. Templates of models that read media may require a message to be a list of parts, even
 * if it is a single text; templates for conversations with tools may require a list of tools.
 */
const INPUTS: readonly TemplateInput[] = [
  { inParts: false, noTools: null },
  { inParts: true, noTools: null },
  { inParts: false, noTools: [] },
];

/**
 * Compiles a model's chat template, and finds out by rendering which conversations it accepts. Throws `engine_failed`
 * if it does not compile, or refuses even messages of a user, an assistant and the user.
 *
 * @param source Jinja source; null for a model without a template
 * @param special texts of the special tokens that templates use by name, such as `bos_token`
 */
export function createChatTemplate(
  source: string | null,
  special: Readonly<Record<string, string>> = {},
  limits?: JinjaLimits,
): ChatTemplate {
  const text = source ?? PLAIN_TEMPLATE;
  const { format, thinks } = reasoningFormat(text);
  // Most templates name the switch `enable_thinking`; those of DeepSeek and Granite name it `thinking`.
  const switches = ['enable_thinking', 'thinking'].filter((name) => new RegExp(`\\b${name}\\b`).test(text));
  const hasLevels = /\breasoning_effort\b/.test(text);
  const jinja = usable(() => compileJinja(text, limits));

  function* write(
    messages: readonly TemplateMessage[],
    { thinking, effort, continues, media, tools }: RenderOptions,
    { inParts, noTools }: TemplateInput,
  ): Generator<void, Segment[]> {
    const values = {
      ...(thinking === undefined ? {} : Object.fromEntries(switches.map((name) => [name, thinking]))),
      ...(effort !== undefined && effort !== 'none' && hasLevels ? { reasoning_effort: effort } : {}),
    };
    const { marked, parts } = markParts(messages, inParts, media);
    const shown = { tools: tools ? templateTools(tools) : noTools };
    const variables = {
      ...special,
      ...NO_TOOLS_OR_DOCUMENTS,
      ...values,
      ...shown,
      messages: marked,
      add_generation_prompt: !continues,
    };
    const segments = splitMarked(yield* jinja(variables), parts, media?.mark);
    if (continues) return endingInText(segments, parts);
    return thinking === false && thinks ? withoutThinking(segments, format) : segments;
  }
  const tryOut = (input: TemplateInput) => probe(input, (messages) => write(messages, {}, input));
  const { traits, afterAnswer, input } = usable(() => atOnce(firstThatWorks(tryOut, INPUTS)));
  let found: { tools: ToolFormat | null } | undefined;
  const tools = (): ToolFormat | null => {
    found ??= { tools: usable(() => findToolFormat(renderPlain, format)) };
    return found.tools;
  };
  const renderPlain: RenderTools = (messages, tools, generate) =>
    atOnce(jinja({ ...special, ...NO_TOOLS_OR_DOCUMENTS, messages, tools, add_generation_prompt: generate }));
  return {
    traits,
    afterAnswer,
    tools,
    thinks,
    reasoning: format,
    stops: source === null ? ['\n\nUser:', '\n\nSystem:', '\n\nAssistant:'] : [],
    renderPlain(messages) {
      const variables = { ...special, ...NO_TOOLS_OR_DOCUMENTS, enable_thinking: false };
      return usable(() => atOnce(jinja({ ...variables, messages, add_generation_prompt: true })));
    },
    *render(messages, options = {}) {
      const said = thinks ? messages.map((message) => withoutReasoning(message, format)) : messages;
      if (!options.tools && !said.some(isToolUse)) {
        return yield* accepted(write(fitMessages(said, traits), options, input));
      }
      const fitted = fitMessages(fitCalls(said, tools()), traits);
      const { tools: sent } = options;
      const shown = sent ? [sent, describedTools(sent)] : [undefined];
      return yield* usableTools(firstThatWorks((tools) => write(fitted, { ...options, tools }, input), shown));
    },
  };
}

/** Tells whether a prompt ends inside an open reasoning block, perhaps in a text that the answer continues. */
export function opensThinking(
  segments: readonly Segment[],
  { open, close }: ReasoningFormat,
  continues = false,
): boolean {
  const tail = continues ? (segments.at(-1)?.text ?? '') : tailOf(segments);
  return tail.lastIndexOf(open) > tail.lastIndexOf(close);
}

/**
 * Returns the result for the first candidate that does not throw a `TemplateError`. If all do, throws the first of
 * these errors.
 */
function* firstThatWorks<A, R>(
  work: (argument: A) => Generator<void, R>,
  candidates: readonly A[],
): Generator<void, R> {
  let first: TemplateError | undefined;
  for (const argument of candidates) {
    try {
      return yield* work(argument);
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      first ??= error;
    }
  }
  throw first ?? new Error('no candidates');
}

function* probe(
  input: TemplateInput,
  write: (messages: readonly TemplateMessage[]) => Generator<void, Segment[]>,
): Generator<void, { input: TemplateInput; traits: TemplateTraits; afterAnswer: string }> {
  function* takes(...roles: TemplateMessage['role'][]): Generator<void, boolean> {
    try {
      yield* write(roles.map((role) => ({ role, content: role })));
      return true;
    } catch (error) {
      if (error instanceof TemplateError) return false;
      throw error;
    }
  }
  // A template must accept a conversation that begins with a user message. Otherwise it cannot be used, and its error
  // is reported.
  const talk = yield* write([
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
    { role: 'user', content: 'c' },
  ]);
  const answer = talk.findIndex(({ text, trust }) => trust === 'user' && text.trim() === 'b');
  const after = talk[answer + 1];
  const traits = {
    system: yield* takes('system', 'user'),
    lateSystem:
      (yield* takes('system', 'user', 'system', 'user')) && (yield* takes('user', 'assistant', 'system', 'user')),
    repeats: (yield* takes('user', 'user')) && (yield* takes('user', 'assistant', 'assistant', 'user')),
    assistantFirst: yield* takes('assistant', 'user'),
  };
  return { input, traits, afterAnswer: after?.trust === 'template' ? after.text : '' };
}

/**
 * Makes the model answer without reasoning: appends a closed reasoning block. Leaves a prompt unchanged if its template
 * has already done so.
 */
function withoutThinking(segments: readonly Segment[], format: ReasoningFormat): Segment[] {
  const tail = tailOf(segments);
  const { close, none } = format;
  if (opensThinking(segments, format))
    return [...segments, { text: `${tail.endsWith('\n') ? '' : '\n'}\n${close}\n\n`, trust: 'template' }];
  return tail.includes(close) || tail.endsWith(none) ? [...segments] : [...segments, { text: none, trust: 'template' }];
}

/** Returns a prompt up to the end of its last message, whose text stays as it was sent where the template trims it. */
function endingInText(segments: readonly Segment[], parts: readonly unknown[]): Segment[] {
  const last = segments.findLastIndex(({ trust }) => trust === 'user');
  const text = parts.at(-1);
  const { text: written = '' } = segments[last] ?? {};
  const spaces = typeof text === 'string' && text.trimEnd().endsWith(written) ? text.slice(text.trimEnd().length) : '';
  return [...segments.slice(0, last), { text: written + spaces, trust: 'user' }];
}

/** Returns the template's own text after the last message. */
function tailOf(segments: readonly Segment[]): string {
  const last = segments.at(-1);
  return last?.trust === 'template' ? last.text : '';
}

/**
 * Removes the reasoning from an assistant's message, because models are trained to read only the answers of earlier
 * messages.
 */
function withoutReasoning(message: TemplateMessage, { open, close }: ReasoningFormat): TemplateMessage {
  const { role, content } = message;
  if (role !== 'assistant' || typeof content !== 'string' || !content.trimStart().startsWith(open)) return message;
  const end = content.indexOf(close);
  return end < 0 ? message : { ...message, content: content.slice(end + close.length).trimStart() };
}

function usable<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw cause instanceof TemplateError ? unusable(cause) : cause;
  }
}

function unusable(cause: TemplateError): AssayError {
  return new AssayError(
    'engine_failed',
    `The model's chat template cannot be used: ${cause.message}. Try again, or use another model.`,
    { cause },
  );
}

/**
 * Runs `work`. Converts a `TemplateError` to `invalid_value`: the template has rendered other conversations, so it is
 * this one that it refuses, as templates do that need a user's message. Exceeding a limit stays `engine_failed`.
 */
function accepted<T>(work: Generator<void, T>): Generator<void, T> {
  return converting(work, (cause) => {
    if (cause.ofLimits) return unusable(cause);
    const message = `The model's chat template refuses this conversation: ${cause.message}. Send the messages as the template needs them, with at least one of the user.`;
    return new AssayError('invalid_value', message, { param: 'messages', cause });
  });
}

/**
 * Runs `work`. Converts a `TemplateError` to `unsupported_parameter`: the template supports tools, but refuses this
 * conversation.
 */
function usableTools<T>(work: Generator<void, T>): Generator<void, T> {
  return converting(work, (cause) => {
    const message = `The model's chat template refuses this conversation with tools: ${cause.message}. Send the outputs right after their calls, and a user message first.`;
    return new AssayError('unsupported_parameter', message, { param: 'messages', cause });
  });
}

function* converting<T>(work: Generator<void, T>, convert: (cause: TemplateError) => AssayError): Generator<void, T> {
  try {
    return yield* work;
  } catch (cause) {
    throw cause instanceof TemplateError ? convert(cause) : cause;
  }
}

/**
 * Completes tools for templates that write them as function signatures (Hermes 3, Command R+): every member gets a
 * description, at most one type, and schemas of its items and additional members. Only the prompt shows the completed
 * tools; the grammar uses the schemas that were sent.
 */
function describedTools(tools: readonly Tool[]): Tool[] {
  return tools.map(({ name, description = '', parameters }) => ({
    name,
    description,
    parameters: { type: 'object', ...parameters, properties: describedMembers(parameters.properties) },
  }));
}

function describedMembers(properties: Json | undefined): JsonSchema {
  return Object.fromEntries(
    Object.entries(isObject(properties) ? properties : {}).map(([name, schema]) => [
      name,
      { description: '', ...typed(schema) },
    ]),
  );
}

/** Keeps the type of a schema only if it has exactly one besides `null`. */
function typed(schema: Json | undefined): JsonSchema {
  if (!isObject(schema)) return {};
  const { type, ...rest } = schema;
  const types = [type ?? []].flat().filter((one) => one !== 'null');
  const [only] = types;
  if (only === undefined || types.length > 1) return rest;
  if (only === 'array') return { ...rest, type: only, items: typed(rest.items) };
  if (only !== 'object') return { ...rest, type: only };
  const members = rest.properties === undefined ? {} : { properties: describedMembers(rest.properties) };
  return { ...rest, type: only, ...members, additionalProperties: typed(rest.additionalProperties) };
}

/**
 * Changes messages with calls so that the template accepts and writes them: one call in each message if it allows no
 * more, no text before the calls if it cannot write any, and the calls as content if it does not write them itself.
 */
function fitCalls(messages: readonly TemplateMessage[], format: ToolFormat | null): readonly TemplateMessage[] {
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
      append(
        spread,
        outputs.filter(({ answers }) => answers?.id === call.id),
      );
    }
    append(
      spread,
      outputs.filter(({ answers }) => !toolCalls.some(({ id }) => id === answers?.id)),
    );
  }
  return spread;
}

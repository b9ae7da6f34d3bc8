import { AssayError } from '../../lib/errors.ts';
import { compileJinja, type JinjaLimits, TemplateError } from './sandboxed-jinja.ts';
import type { Segment } from './segment.ts';
import { fitMessages, type TemplateMessage, type TemplateTraits } from './template-message.ts';

export interface ChatTemplate {
  readonly traits: TemplateTraits;
  /** True when the template shows that the model can reason before it answers. */
  readonly thinks: boolean;
  /** Texts that begin the next message when no token ends an answer; only for a model without a template. */
  readonly stops: readonly string[];
  /**
   * Text that the template writes between an answer and the next message. It begins with the token that ends an answer.
   */
  readonly afterAnswer: string;
  /**
   * Renders the prompt up to the model's answer. Each message's text is a `user` segment of its own, in order;
   * reasoning of earlier answers is omitted. `thinking: false` closes the reasoning block before it begins; absent: the
   * model decides.
   */
  render(messages: readonly TemplateMessage[], options?: { thinking?: boolean }): Segment[];
}

/** Template for a model without a chat template. */
export const PLAIN_TEMPLATE =
  "{% for m in messages %}{{ m.role | capitalize + ': ' + m.content + '\\n\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

/**
 * Values that every template gets, as in transformers (`apply_chat_template`): some templates test whether a value is
 * none, not whether it exists.
 */
const NOTHING_ELSE = { tools: null, documents: null };

/**
 * Creates a model's chat template and probes once which conversations it accepts. `special` are the texts that
 * templates name (`bos_token`, …). Throws `engine_failed` when the template cannot be used at all.
 */
export function createChatTemplate(
  source: string | null,
  special: Readonly<Record<string, string>> = {},
  limits?: JinjaLimits,
): ChatTemplate {
  const text = source ?? PLAIN_TEMPLATE;
  const thinks = text.includes('</think>');
  const switchable = text.includes('enable_thinking');
  const jinja = usable(() => compileJinja(text, limits));

  function write(messages: readonly TemplateMessage[], thinking: boolean | undefined): Segment[] {
    const values = thinking === undefined || !switchable ? {} : { enable_thinking: thinking };
    const marked = messages.map(({ role }, i) => ({ role, content: mark(i) }));
    const variables = { ...special, ...NOTHING_ELSE, ...values, messages: marked, add_generation_prompt: true };
    const segments = split(jinja(variables), messages);
    return thinking === false && thinks ? withoutThinking(segments) : segments;
  }
  const { traits, afterAnswer } = usable(() => probe((messages) => write(messages, undefined)));
  return {
    traits,
    afterAnswer,
    thinks,
    stops: source === null ? ['\n\nUser:', '\n\nSystem:', '\n\nAssistant:'] : [],
    render(messages, { thinking } = {}) {
      const said = thinks ? messages.map(withoutReasoning) : messages;
      return usable(() => write(fitMessages(said, traits), thinking));
    },
  };
}

/** Tells whether a prompt ends inside an open reasoning block. */
export function opensThinking(segments: readonly Segment[]): boolean {
  const tail = tailOf(segments);
  return tail.lastIndexOf('<think>') > tail.lastIndexOf('</think>');
}

/**
 * Returns the mark that replaces a text while the template renders. Its outer spaces tell whether the template trims.
 * No template writes these.
 */
const mark = (index: number) => `\u3000\uE000${index}\uE001\u3000`;
const MARK = /(\u3000?)\uE000(\d+)\uE001(\u3000?)/gu;

/** Replaces the marks in a rendered text by the messages' texts. Throws when a mark is missing, moved or repeated. */
function split(rendered: string, messages: readonly TemplateMessage[]): Segment[] {
  const segments: Segment[] = [];
  let from = 0;
  let next = 0;
  for (const match of rendered.matchAll(MARK)) {
    const [mark, spaceBefore, index, spaceAfter] = match;
    const message = messages[next];
    if (!message || Number(index) !== next) throw new TemplateError('the template repeats or reorders messages');
    next++;
    const start = spaceBefore === '' ? message.content.trimStart() : message.content;
    const text = spaceAfter === '' ? start.trimEnd() : start;
    const before = rendered.slice(from, match.index);
    from = match.index + mark.length;
    // A space before a word is part of the word's token, so it belongs to the word.
    const space = before.endsWith(' ') ? ' ' : '';
    const written = before.slice(0, before.length - space.length);
    if (written) segments.push({ text: written, trust: 'template' });
    segments.push({ text: space + text, trust: 'user' });
  }
  if (next !== messages.length) throw new TemplateError('the template omits messages');
  const rest = rendered.slice(from);
  if (rest) segments.push({ text: rest, trust: 'template' });
  return segments;
}

function probe(write: (messages: readonly TemplateMessage[]) => Segment[]): {
  traits: TemplateTraits;
  afterAnswer: string;
} {
  const takes = (...roles: TemplateMessage['role'][]) => {
    try {
      write(roles.map((role) => ({ role, content: role })));
      return true;
    } catch (error) {
      if (error instanceof TemplateError) return false;
      throw error;
    }
  };
  // A template must accept one user message: without that there is no conversation, so its error is reported.
  const talk = write([
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
    { role: 'user', content: 'c' },
  ]);
  const answer = talk.findIndex(({ text, trust }) => trust === 'user' && text.trim() === 'b');
  const after = talk[answer + 1];
  const traits = {
    system: takes('system', 'user'),
    lateSystem: takes('system', 'user', 'system', 'user') && takes('user', 'assistant', 'system', 'user'),
    repeats: takes('user', 'user') && takes('user', 'assistant', 'assistant', 'user'),
    assistantFirst: takes('assistant', 'user'),
  };
  return { traits, afterAnswer: after?.trust === 'template' ? after.text : '' };
}

/**
 * Closes the reasoning block, so that the answer comes at once. Leaves prompts unchanged whose template does so itself.
 */
function withoutThinking(segments: readonly Segment[]): Segment[] {
  const tail = tailOf(segments);
  if (opensThinking(segments))
    return [...segments, { text: `${tail.endsWith('\n') ? '' : '\n'}\n</think>\n\n`, trust: 'template' }];
  return tail.includes('</think>')
    ? [...segments]
    : [...segments, { text: '<think>\n\n</think>\n\n', trust: 'template' }];
}

/** Returns the template's text after the last message. */
function tailOf(segments: readonly Segment[]): string {
  const last = segments.at(-1);
  return last?.trust === 'template' ? last.text : '';
}

/** Removes an assistant's reasoning: models are trained to read only the answers of earlier messages. */
function withoutReasoning(message: TemplateMessage): TemplateMessage {
  if (message.role !== 'assistant') return message;
  return { ...message, content: message.content.replace(/^\s*<think>[\s\S]*?<\/think>\s*/u, '') };
}

function usable<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof TemplateError)) throw cause;
    throw new AssayError('engine_failed', `The model's chat template cannot be used: ${cause.message}.`, { cause });
  }
}

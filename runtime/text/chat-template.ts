import type { MediaPart } from '../../lib/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { type ReasoningFormat, reasoningFormat } from './reasoning-format.ts';
import { compileJinja, type JinjaLimits, TemplateError } from './sandboxed-jinja.ts';
import type { Segment } from './segment.ts';
import { fitMessages, type TemplateMessage, type TemplateTraits } from './template-message.ts';

export interface ChatTemplate {
  readonly traits: TemplateTraits;
  /** True when the template shows that the model can reason before it answers. */
  readonly thinks: boolean;
  /** The marks that the model writes around its reasoning. */
  readonly reasoning: ReasoningFormat;
  /** Texts that begin the next message when no token ends an answer; only for a model without a template. */
  readonly stops: readonly string[];
  /**
   * Text that the template writes between an answer and the next message. It begins with the token that ends an answer.
   */
  readonly afterAnswer: string;
  /**
   * Renders the prompt up to the model's answer. Each message's text is a `user` segment of its own, in order;
   * reasoning of earlier answers is omitted. `thinking: false` closes the reasoning block before it begins; absent: the
   * model decides. `mediaMark` is the text that the template writes for an image or a recording.
   */
  render(messages: readonly TemplateMessage[], options?: RenderOptions): Segment[];
}

export interface RenderOptions {
  thinking?: boolean | undefined;
  mediaMark?: string | undefined;
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
  const { format, thinks } = reasoningFormat(text);
  const switchable = text.includes('enable_thinking');
  const jinja = usable(() => compileJinja(text, limits));

  function write(
    messages: readonly TemplateMessage[],
    { thinking, mediaMark }: RenderOptions,
    inParts: boolean,
  ): Segment[] {
    const values = thinking === undefined || !switchable ? {} : { enable_thinking: thinking };
    const { marked, parts } = markParts(messages, inParts);
    const variables = { ...special, ...NOTHING_ELSE, ...values, messages: marked, add_generation_prompt: true };
    const segments = split(jinja(variables), parts, mediaMark);
    return thinking === false && thinks ? withoutThinking(segments, format) : segments;
  }
  // Templates of models that read media may need the parts of a message, even if it is a single text.
  const tryOut = (inParts: boolean) => ({ inParts, ...probe((messages) => write(messages, {}, inParts)) });
  const { traits, afterAnswer, inParts } = usable(() => firstThatWorks(tryOut, [false, true]));
  return {
    traits,
    afterAnswer,
    thinks,
    reasoning: format,
    stops: source === null ? ['\n\nUser:', '\n\nSystem:', '\n\nAssistant:'] : [],
    render(messages, options = {}) {
      const said = thinks ? messages.map((message) => withoutReasoning(message, format)) : messages;
      return usable(() => write(fitMessages(said, traits), options, inParts));
    },
  };
}

/** Tells whether a prompt ends inside an open reasoning block. */
export function opensThinking(segments: readonly Segment[], { open, close }: ReasoningFormat): boolean {
  const tail = tailOf(segments);
  return tail.lastIndexOf(open) > tail.lastIndexOf(close);
}

/**
 * Returns the mark that replaces a text while the template renders. Its outer spaces tell whether the template trims.
 * No template writes these.
 */
const mark = (index: number) => `\u3000\uE000${index}\uE001\u3000`;
const MARK = /(\u3000?)\uE000(\d+)\uE001(\u3000?)/gu;

/**
 * Puts marks in place of the messages' texts. A message with media, and with `inParts` any, is a list of parts, as
 * transformers gives it. Returns the messages, and all parts in order: what the marks stand for, and the media.
 */
function markParts(messages: readonly TemplateMessage[], inParts: boolean) {
  const parts: (string | MediaPart)[] = [];
  const marked = messages.map(({ role, content }) => {
    if (typeof content === 'string' && !inParts) return { role, content: mark(parts.push(content) - 1) };
    const list = typeof content === 'string' ? [content] : content;
    const made = list.map((part) => {
      const index = parts.push(part) - 1;
      return typeof part === 'string' ? { type: 'text', text: mark(index) } : { type: part.type };
    });
    return { role, content: made };
  });
  return { marked, parts };
}

/**
 * Replaces the marks in a rendered text by the texts, and what the template writes for media by these. Throws when
 * one is missing, moved or repeated.
 */
function split(rendered: string, parts: readonly (string | MediaPart)[], mediaMark: string | undefined): Segment[] {
  const segments: Segment[] = [];
  let next = 0;
  /** Adds text of the template, which may have media in it. */
  const addTemplate = (text: string): void => {
    const pieces = mediaMark ? text.split(mediaMark) : [text];
    for (const [index, piece] of pieces.entries()) {
      const part = parts[next];
      if (index > 0) {
        if (part === undefined || typeof part === 'string') throw new TemplateError('the template moves media');
        segments.push({ text: '', trust: 'media', part });
        next++;
      }
      if (piece) segments.push({ text: piece, trust: 'template' });
    }
  };
  let from = 0;
  for (const match of rendered.matchAll(MARK)) {
    const [mark, spaceBefore, index, spaceAfter] = match;
    const before = rendered.slice(from, match.index);
    from = match.index + mark.length;
    // A space before a word is part of the word's token, so it belongs to the word.
    const space = before.endsWith(' ') ? ' ' : '';
    addTemplate(before.slice(0, before.length - space.length));
    const content = parts[next];
    if (typeof content !== 'string' || Number(index) !== next) {
      throw new TemplateError('the template repeats or reorders messages or media');
    }
    next++;
    const start = spaceBefore === '' ? content.trimStart() : content;
    segments.push({ text: space + (spaceAfter === '' ? start.trimEnd() : start), trust: 'user' });
  }
  addTemplate(rendered.slice(from));
  if (next !== parts.length) throw new TemplateError('the template omits messages or media');
  return segments;
}

/** Returns the first result that is not a `TemplateError`; throws the first error if all are. */
function firstThatWorks<A, R>(work: (argument: A) => R, candidates: readonly A[]): R {
  let first: TemplateError | undefined;
  for (const argument of candidates) {
    try {
      return work(argument);
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      first ??= error;
    }
  }
  throw first ?? new Error('no candidates');
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
function withoutThinking(segments: readonly Segment[], format: ReasoningFormat): Segment[] {
  const tail = tailOf(segments);
  const { close, none } = format;
  if (opensThinking(segments, format))
    return [...segments, { text: `${tail.endsWith('\n') ? '' : '\n'}\n${close}\n\n`, trust: 'template' }];
  return tail.includes(close) || tail.endsWith(none) ? [...segments] : [...segments, { text: none, trust: 'template' }];
}

/** Returns the template's text after the last message. */
function tailOf(segments: readonly Segment[]): string {
  const last = segments.at(-1);
  return last?.trust === 'template' ? last.text : '';
}

/** Removes an assistant's reasoning: models are trained to read only the answers of earlier messages. */
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
    if (!(cause instanceof TemplateError)) throw cause;
    throw new AssayError('engine_failed', `The model's chat template cannot be used: ${cause.message}.`, { cause });
  }
}

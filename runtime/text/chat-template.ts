import { AssayError } from '../../lib/errors.ts';
import { compileJinja, type JinjaLimits, TemplateError } from './sandboxed-jinja.ts';
import type { Segment } from './segment.ts';
import { fitMessages, type TemplateMessage, type TemplateTraits } from './template-message.ts';

export interface ChatTemplate {
  readonly traits: TemplateTraits;
  /** Whether the model can think before it answers, as far as the template tells. */
  readonly thinks: boolean;
  /** Texts that begin the next turn where no token ends an answer; only of a model without a template. */
  readonly stops: readonly string[];
  /** What the template writes between an answer and the next turn: it begins with the token that ends an answer. */
  readonly afterAnswer: string;
  /**
   * The prompt up to where the model writes. Texts of messages come back as `user` segments, each its own, in order; an
   * assistant's earlier reasoning is left out. `thinking: false` closes the reasoning before it begins; absent: the model's way.
   */
  render(messages: readonly TemplateMessage[], options?: { thinking?: boolean }): Segment[];
}

/** What a model without a chat template reads. */
export const PLAIN_TEMPLATE =
  "{% for m in messages %}{{ m.role | capitalize + ': ' + m.content + '\\n\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

/** What templates always find, as transformers gives it (`apply_chat_template`): some ask whether it is none, not whether it is there. */
const NOTHING_ELSE = { tools: null, documents: null };

/**
 * A model's chat template, tried out once to see what it accepts. `special` are the texts that templates name
 * (`bos_token`, …). Throws `engine_failed` where the template cannot be used at all.
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

/** Whether a prompt leaves the model inside an open reasoning block. */
export function opensThinking(segments: readonly Segment[]): boolean {
  const tail = tailOf(segments);
  return tail.lastIndexOf('<think>') > tail.lastIndexOf('</think>');
}

/** Rendering sees marks in place of texts, between spaces that tell whether the template trims. No template writes these. */
const mark = (index: number) => `\u3000\uE000${index}\uE001\u3000`;
const MARK = /(\u3000?)\uE000(\d+)\uE001(\u3000?)/u;

/** The rendered text with the messages' texts in place of their marks. Throws where one is missing, moved or repeated. */
function split(rendered: string, messages: readonly TemplateMessage[]): Segment[] {
  const segments: Segment[] = [];
  const pieces = rendered.split(MARK);
  for (let i = 0; i < pieces.length; i += 4) {
    if (i + 1 === pieces.length) {
      if (pieces[i]) segments.push({ text: pieces[i]!, trust: 'template' });
      break;
    }
    if (Number(pieces[i + 2]) !== i / 4) throw new TemplateError('the template repeats or reorders messages');
    const { content } = messages[i / 4]!;
    const left = pieces[i + 1] === '' ? content.trimStart() : content;
    const said = pieces[i + 3] === '' ? left.trimEnd() : left;
    // A space before a word is part of the word's token, so it goes with the word.
    const [, before, space] = /^(.*?)( ?)$/su.exec(pieces[i]!)!;
    if (before) segments.push({ text: before, trust: 'template' });
    segments.push({ text: space + said, trust: 'user' });
  }
  if ((pieces.length - 1) / 4 !== messages.length) throw new TemplateError('the template leaves messages out');
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
  // Without this there is no conversation: let the reason out.
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

/** Closes the reasoning block, so that the answer comes at once. Templates that do so themselves stay as they are. */
function withoutThinking(segments: readonly Segment[]): Segment[] {
  const tail = tailOf(segments);
  if (opensThinking(segments))
    return [...segments, { text: `${tail.endsWith('\n') ? '' : '\n'}\n</think>\n\n`, trust: 'template' }];
  return tail.includes('</think>')
    ? [...segments]
    : [...segments, { text: '<think>\n\n</think>\n\n', trust: 'template' }];
}

/** The template's text after the last message. */
function tailOf(segments: readonly Segment[]): string {
  const last = segments.at(-1);
  return last?.trust === 'template' ? last.text : '';
}

/** What an assistant said after thinking; models are trained to read only that of earlier messages. */
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

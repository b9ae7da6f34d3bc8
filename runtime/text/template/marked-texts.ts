import type { MediaPart } from '../../../lib/contract/conversation.ts';
import type { MediaMark, Segment } from '../segment.ts';
import { splitAtGuards, templateCalls } from '../tools/guarded-text.ts';
import { TemplateError } from './sandboxed-jinja.ts';
import type { TemplateMessage } from './template-message.ts';

/**
 * Returns the placeholder for a text while the template renders. The spaces at its ends show whether the template trims
 * texts. No template writes these characters itself.
 */
const mark = (index: number) => `\u3000\uE000${index}\uE001\u3000`;
const MARK = /(\u3000?)\uE000(\d+)\uE001(\u3000?)/gu;

/**
 * Replaces the texts of messages by placeholders. A message with media, or every message if `inParts` is true, becomes
 * a list of parts, as transformers passes it to templates. If `media.inText` is true, each image or recording becomes a
 * mark in the text instead. Returns the messages, and the replaced texts and media in order.
 */
export function markParts(messages: readonly TemplateMessage[], inParts: boolean, media?: MediaMark) {
  const parts: (string | MediaPart)[] = [];
  const marked = messages.map(({ role, content, toolCalls, callText, answers }) => {
    if (callText !== undefined) return { role, content: callText };
    const tools = {
      ...(toolCalls ? { tool_calls: templateCalls(toolCalls) } : {}),
      ...(answers ? { tool_call_id: answers.id, name: answers.name } : {}),
    };
    // A placeholder would count as text before the calls.
    if (toolCalls && content === '') return { role, content: '', ...tools };
    if (typeof content === 'string' && !inParts) return { role, content: mark(parts.push(content) - 1), ...tools };
    const list = typeof content === 'string' ? [content] : content;
    if (media?.inText) {
      const written = list.map((part) => {
        const index = parts.push(part) - 1;
        return typeof part === 'string' ? mark(index) : media.mark;
      });
      return { role, content: written.join(''), ...tools };
    }
    const made = list.map((part) => {
      const index = parts.push(part) - 1;
      return typeof part === 'string' ? { type: 'text', text: mark(index) } : { type: part.type };
    });
    return { role, content: made, ...tools };
  });
  return { marked, parts };
}

/**
 * Splits a rendered prompt at its placeholders, and puts the original texts and media in their place, trimmed where the
 * template trims. Throws `TemplateError` if one is missing, moved or repeated.
 *
 * @param parts the replaced texts and media (`markParts`)
 */
export function splitMarked(
  rendered: string,
  parts: readonly (string | MediaPart)[],
  mediaMark: string | undefined,
): Segment[] {
  const segments: Segment[] = [];
  let next = 0;
  /** Adds rendered text. Its parts between guards (`tools/guarded-text.ts`) are the caller's, from tools and calls. */
  const addTemplate = (text: string): void => {
    for (const [i, piece] of splitAtGuards(text).entries()) {
      if (i % 2 === 0) addOwn(piece);
      else if (piece) segments.push({ text: piece, trust: 'user' });
    }
  };
  /** Adds the template's own text, in which `mediaMark` stands for media. */
  const addOwn = (text: string): void => {
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
    // The space before a word is part of the word's token, so it is moved to the word's segment.
    const space = before.endsWith(' ') ? ' ' : '';
    addTemplate(before.slice(0, before.length - space.length));
    const content = parts[next];
    if (typeof content !== 'string' || Number(index) !== next) {
      throw new TemplateError('the template repeats or reorders messages or media');
    }
    next++;
    const start = spaceBefore === '' ? content.trimStart() : content;
    const whole = spaceAfter === '' ? start.trimEnd() : start;
    // Llama 3 writes the output of a tool as a JSON string. No template puts a message in quotes for another reason.
    const inQuotes = before.endsWith('"') && rendered[from] === '"';
    segments.push({ text: space + (inQuotes ? JSON.stringify(whole).slice(1, -1) : whole), trust: 'user' });
  }
  addTemplate(rendered.slice(from));
  if (next !== parts.length) throw new TemplateError('the template omits messages or media');
  return segments;
}

import type { ChatMessage, MediaKind, MediaPart, ToolCall } from '../../../lib/contract/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { messageText, namedParts } from '../../../lib/prompt/tasks.ts';

/**
 * Describes a message to render with a chat template. Its content is one text, or a list of texts and media in their
 * order.
 */
export interface TemplateMessage {
  role: ChatMessage['role'];
  content: string | readonly (string | MediaPart)[];
  /** In an assistant's message: the tools that it calls. */
  toolCalls?: readonly ToolCall[];
  /** In an assistant's message: the calls as the model writes them, for a template that does not write calls itself. */
  callText?: string;
  /** In a tool's message: the call that it answers, and the name of the tool. */
  answers?: AnsweredCall;
}

export type AnsweredCall = Pick<ToolCall, 'id' | 'name'>;

/** Tells which conversations a chat template accepts, as found by rendering. */
export interface TemplateTraits {
  /** True if it accepts a system message at the start. */
  system: boolean;
  /** True if it accepts a system message anywhere. */
  lateSystem: boolean;
  /** True if it accepts two messages of the same role in a row. */
  repeats: boolean;
  /** True if it accepts an assistant message as the first one. */
  assistantFirst: boolean;
}

/**
 * Converts chat messages to messages for a chat template, without calls and the ids of calls (`withToolFields` adds
 * these). Throws `unsupported_modality` for media that the model does not read.
 *
 * @param reads kind of media that the model reads besides text; undefined if none
 * @param refusal error message that says why the model reads no media, if that is known
 */
export function toTemplateMessages(
  messages: readonly ChatMessage[],
  reads: MediaKind | undefined,
  refusal?: string,
): TemplateMessage[] {
  return messages.map((message): TemplateMessage => {
    const media = message.parts.filter((part): part is MediaPart => part.type !== 'text');
    const refused = media.find(({ type }) => type !== reads);
    if (refused) throw unsupported(refused, reads, refusal);
    if (media.length === 0) return { role: message.role, content: messageText(message) };
    const content: (string | MediaPart)[] = [];
    for (const part of namedParts(message)) {
      const last = content.at(-1);
      if (part.type !== 'text') content.push(part);
      else if (typeof last === 'string') content[content.length - 1] = `${last}\n${part.text}`;
      else content.push(part.text);
    }
    return { role: message.role, content };
  });
}

function unsupported({ type, param }: MediaPart, reads?: MediaKind, refusal?: string): AssayError {
  const message =
    refusal ??
    `The model reads ${reads === undefined ? 'text' : `text and ${reads === 'image' ? 'images' : 'audio'}`} only. Remove the ${type}, or load a model that reads it.`;
  return new AssayError('unsupported_modality', message, { param });
}

/**
 * Changes a conversation so that the template accepts it: moves, converts or joins messages, with a blank line between
 * joined texts. Omits no text. Runs in linear time.
 */
export function fitMessages(messages: readonly TemplateMessage[], traits: TemplateTraits): TemplateMessage[] {
  let fitted: TemplateMessage[] = [...messages];
  if (!traits.lateSystem) {
    const isSystem = ({ role }: TemplateMessage) => role === 'system';
    fitted = [...fitted.filter(isSystem), ...fitted.filter((message) => !isSystem(message))];
  }
  if (!traits.system)
    fitted = fitted.map((message) => (message.role === 'system' ? { ...message, role: 'user' } : message));
  const first = fitted.find(({ role }) => role !== 'system');
  if (!traits.assistantFirst && first?.role === 'assistant') {
    fitted.splice(fitted.indexOf(first), 0, { role: 'user', content: '' });
  }
  const runs: { first: TemplateMessage; contents: TemplateMessage['content'][] }[] = [];
  for (const message of fitted) {
    const { role, content } = message;
    const last = runs.at(-1);
    // System texts that were moved are always joined, because templates that accept a system message accept only one.
    const join = last?.first.role === role && (!traits.repeats || (role === 'system' && !traits.lateSystem));
    if (join && !isToolUse(last.first) && !isToolUse(message)) last.contents.push(content);
    else runs.push({ first: message, contents: [content] });
  }
  return runs.map(({ first, contents }) => ({ ...first, content: joined(contents) }));
}

/** Tells whether a message calls a tool or answers a call. */
export function isToolUse({ role, toolCalls }: TemplateMessage): boolean {
  return role === 'tool' || toolCalls !== undefined;
}

/** Joins contents, with a blank line between texts and without empty texts. A single content is returned unchanged. */
function joined(contents: readonly TemplateMessage['content'][]): TemplateMessage['content'] {
  const [only] = contents;
  if (only !== undefined && contents.length === 1) return only;
  const parts: (string | MediaPart)[] = [];
  for (const part of contents.flat()) {
    const last = parts.at(-1);
    if (typeof part !== 'string') parts.push(part);
    else if (part !== '' && typeof last === 'string') parts[parts.length - 1] = `${last}\n\n${part}`;
    else if (part !== '') parts.push(part);
  }
  return parts.every((part) => typeof part === 'string') ? parts.join('') : parts;
}

import type { ChatMessage, MediaPart } from '../../lib/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { messageText } from '../../lib/prompt/tasks.ts';

/** Describes a message as chat templates read it: one text. */
export interface TemplateMessage {
  role: ChatMessage['role'];
  content: string;
}

/** Says which conversations a chat template accepts, found by trying. */
export interface TemplateTraits {
  /** Accepts a system message at the start. */
  system: boolean;
  /** Accepts a system message at any place. */
  lateSystem: boolean;
  /** Accepts two messages of the same role in a row. */
  repeats: boolean;
  /** Accepts an assistant message first. */
  assistantFirst: boolean;
}

/**
 * Converts chat messages to the template's form. Throws `unsupported_modality` for an image or audio: these models read
 * text.
 */
export function toTemplateMessages(messages: readonly ChatMessage[]): TemplateMessage[] {
  return messages.map((turn) => {
    const media = turn.parts.find((part): part is MediaPart => part.type !== 'text');
    if (media) {
      const message = `The model reads text only. Remove the ${media.type}, or load a model that reads it.`;
      throw new AssayError('unsupported_modality', message, { param: media.param });
    }
    return { role: turn.role, content: messageText(turn) };
  });
}

/**
 * Changes a conversation so that the template accepts it: joins texts by a blank line and omits nothing. Runs in linear
 * time.
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
  const runs: { role: TemplateMessage['role']; texts: string[] }[] = [];
  for (const { role, content } of fitted) {
    const last = runs.at(-1);
    // Moved system texts are always joined: templates that accept one accept only one.
    const join = last?.role === role && (!traits.repeats || (role === 'system' && !traits.lateSystem));
    if (join) last.texts.push(content);
    else runs.push({ role, texts: [content] });
  }
  return runs.map(({ role, texts }) => ({ role, content: texts.filter((text) => text !== '').join('\n\n') }));
}

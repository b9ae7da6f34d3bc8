import type { ChatMessage, MediaPart } from '../../lib/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { messageText } from '../../lib/prompt/tasks.ts';

/** A turn as chat templates read it: one text. */
export interface TemplateMessage {
  role: ChatMessage['role'];
  content: string;
}

/** What a chat template puts up with, found by trying it. */
export interface TemplateTraits {
  /** Takes a system message in front. */
  system: boolean;
  /** Takes a system message further down. */
  lateSystem: boolean;
  /** Takes two messages of one role in a row. */
  repeats: boolean;
  /** Takes an assistant message first. */
  assistantFirst: boolean;
}

/** Converts chat messages to the template's form. Throws `unsupported_modality` for an image or audio: these models read text. */
export function toTemplateMessages(messages: readonly ChatMessage[]): TemplateMessage[] {
  return messages.map((turn) => {
    const media = turn.parts.find((part): part is MediaPart => part.type !== 'text');
    if (media) {
      const message = `The model reads text only; leave the ${media.type} out, or use a model that reads it.`;
      throw new AssayError('unsupported_modality', message, { param: media.param });
    }
    return { role: turn.role, content: messageText(turn) };
  });
}

/** The same conversation in a form that the template accepts: nothing is left out, texts are joined by a blank line. Takes time in proportion to it. */
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
    // Moved system texts are always joined: templates that want one want only one.
    const join = last?.role === role && (!traits.repeats || (role === 'system' && !traits.lateSystem));
    if (join) last.texts.push(content);
    else runs.push({ role, texts: [content] });
  }
  return runs.map(({ role, texts }) => ({ role, content: texts.filter((text) => text !== '').join('\n\n') }));
}

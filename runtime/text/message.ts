import type { MediaPart, Turn } from '../../lib/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { turnText } from '../../lib/prompt/tasks.ts';

/** A turn as chat templates read it: one text. */
export interface Message {
  role: Turn['role'];
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

/** Turns as messages. Throws `unsupported_modality` for an image or audio: these models read text. */
export function messagesOf(turns: readonly Turn[]): Message[] {
  return turns.map((turn) => {
    const media = turn.parts.find((part): part is MediaPart => part.type !== 'text');
    if (media) {
      const message = `The model reads text only; leave the ${media.type} out, or use a model that reads it.`;
      throw new AssayError('unsupported_modality', message, { param: media.param });
    }
    return { role: turn.role, content: turnText(turn) };
  });
}

/** The same conversation in a form that the template accepts: nothing is left out, texts are joined by a blank line. Takes time in proportion to it. */
export function fitMessages(messages: readonly Message[], traits: TemplateTraits): Message[] {
  let fitted: Message[] = [...messages];
  if (!traits.lateSystem) {
    const isSystem = ({ role }: Message) => role === 'system';
    fitted = [...fitted.filter(isSystem), ...fitted.filter((message) => !isSystem(message))];
  }
  if (!traits.system)
    fitted = fitted.map((message) => (message.role === 'system' ? { ...message, role: 'user' } : message));
  const first = fitted.find(({ role }) => role !== 'system');
  if (!traits.assistantFirst && first?.role === 'assistant') {
    fitted.splice(fitted.indexOf(first), 0, { role: 'user', content: '' });
  }
  const runs: { role: Message['role']; texts: string[] }[] = [];
  for (const { role, content } of fitted) {
    const last = runs.at(-1);
    // Moved system texts are always joined: templates that want one want only one.
    const join = last?.role === role && (!traits.repeats || (role === 'system' && !traits.lateSystem));
    if (join) last.texts.push(content);
    else runs.push({ role, texts: [content] });
  }
  return runs.map(({ role, texts }) => ({ role, content: texts.filter((text) => text !== '').join('\n\n') }));
}

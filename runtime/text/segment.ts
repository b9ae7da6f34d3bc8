import type { MediaPart } from '../../lib/conversation.ts';
import type { Tokenizer } from './tokenizer.ts';

/**
 * Describes a part of a prompt. Only `template` text may become control tokens; `user` text is always text; `media`
 * stands for one image or recording, whose text its family writes (`MediaText`).
 */
export type Segment = { text: string; trust: 'template' | 'user' } | { text: ''; trust: 'media'; part: MediaPart };

/** Says how media are written into a prompt. */
export interface MediaText {
  /** Names what the model reads beside text. */
  readonly kind: MediaPart['type'];
  /** Text that the chat template writes for one. */
  readonly mark: string;
  /** Returns the text for one; its `token` becomes the ids from `firstId` on, one after the other. */
  write(part: MediaPart): { text: string; token: number; firstId: number };
}

/** Encodes segments one by one. `before` holds the token ids in front of them. */
export function encodeSegments(
  { tokenizer, media }: { tokenizer: Tokenizer; media?: MediaText | undefined },
  segments: readonly Segment[],
  before: readonly number[] = [],
): number[] {
  const ids: number[] = [];
  let afterMedia = false;
  for (const segment of segments) {
    const previous = ids.at(-1) ?? before.at(-1);
    const continues = previous !== undefined && !afterMedia && !tokenizer.control.has(previous);
    for (const id of encoded(segment, continues)) ids.push(id);
    afterMedia = segment.trust === 'media';
  }
  return ids;

  function encoded(segment: Segment, continues: boolean): readonly number[] {
    if (segment.trust === 'user') return tokenizer.encodeUser(segment.text, continues);
    if (!('part' in segment)) return tokenizer.encodeTemplate(segment.text, continues);
    if (!media) throw new Error('this model has no text for media');
    const { text, token, firstId } = media.write(segment.part);
    let next = firstId;
    return tokenizer.encodeTemplate(text, continues).map((id) => (id === token ? next++ : id));
  }
}

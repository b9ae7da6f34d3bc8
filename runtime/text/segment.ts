import type { MediaKind, MediaPart } from '../../lib/contract/conversation.ts';
import type { Tokenizer } from './tokenizer/tokenizer.ts';

/**
 * Describes a part of a prompt. `trust` says who wrote it: `template` text may become control tokens, `user` text never
 * does; `media` stands for one image or recording, whose text the model's family writes (`MediaText`).
 */
export type Segment = { text: string; trust: 'template' | 'user' } | { text: ''; trust: 'media'; part: MediaPart };

/** Says what a chat template writes for an image or a recording. */
export interface MediaMark {
  /** Text that the chat template writes for one image or recording. */
  readonly mark: string;
  /** True if the mark is part of a message's text, because the template accepts only text. */
  readonly inText?: boolean | undefined;
}

/** Writes images or recordings into a prompt, as the model's family does. */
export interface MediaText extends MediaMark {
  /** Kind of media that the model reads besides text. */
  readonly kind: MediaKind;
  /**
   * Returns the text for one image or recording. In its encoding, the occurrences of the id `token` must be replaced by
   * the ids `firstId`, `firstId + 1` and so on.
   */
  write(part: MediaPart): { text: string; token: number; firstId: number };
}

/**
 * Encodes segments one after another. Returns their token ids, without those of `before`. Throws for a media segment if
 * `media` is undefined. Yields after pieces of long texts and after each segment, so that other work may run.
 *
 * @param before token ids that precede the segments, because some tokenizers encode the beginning of a text differently
 */
export function* encodeSegments(
  { tokenizer, media }: { tokenizer: Tokenizer; media?: MediaText | undefined },
  segments: readonly Segment[],
  before: readonly number[] = [],
): Generator<void, number[]> {
  const ids: number[] = [];
  let afterMedia = false;
  for (const segment of segments) {
    const previous = ids.at(-1) ?? before.at(-1);
    const continues = previous !== undefined && !afterMedia && !tokenizer.control.has(previous);
    for (const id of yield* encoded(segment, continues)) ids.push(id);
    afterMedia = segment.trust === 'media';
    yield;
  }
  return ids;

  function* encoded(segment: Segment, continues: boolean): Generator<void, readonly number[]> {
    if (segment.trust === 'user') return yield* tokenizer.encodeInParts(segment.text, continues);
    if (!('part' in segment)) return tokenizer.encodeTemplate(segment.text, continues);
    if (!media) throw new Error('this model has no text for media');
    const { text, token, firstId } = media.write(segment.part);
    let next = firstId;
    return tokenizer.encodeTemplate(text, continues).map((id) => (id === token ? next++ : id));
  }
}

/** Encodes a prompt. A template writes the begin token itself; for a model without a template it is added here. */
export function* encodeWithBegin(
  model: Parameters<typeof encodeSegments>[0] & { template: { stops: readonly string[] } },
  segments: readonly Segment[],
): Generator<void, number[]> {
  const begin = model.template.stops.length > 0 ? model.tokenizer.begin : null;
  if (begin === null) return yield* encodeSegments(model, segments);
  return [begin, ...(yield* encodeSegments(model, segments, [begin]))];
}

import * as v from 'valibot';
import { strictObject, variant } from '../validation/objects.ts';
import { rule } from '../validation/rules.ts';
import { described, exactOptional, nonEmpty } from './values.ts';

const members = {
  type: v.picklist(['url', 'base64']),
  url: exactOptional(nonEmpty, 'Address of the file. Required with type url.'),
  data: exactOptional(nonEmpty, 'The file in base64. Required with type base64.'),
  mime_type: exactOptional(nonEmpty, 'Type of the file, such as image/png. Required with type base64.'),
};

type Source = v.InferOutput<v.StrictObjectSchema<typeof members, undefined>>;

/**
 * For each `type`, the members that it requires, and the member of the other type that it excludes (docs/interface.md,
 * D-9).
 */
const MEMBERS = {
  url: { needs: ['url'], excludes: 'data' },
  base64: { needs: ['data', 'mime_type'], excludes: 'url' },
} as const;

function fitting<TInput extends Source>() {
  return rule<TInput>((media) => {
    const { needs, excludes } = MEMBERS[media.type];
    const missing = needs.find((name) => media[name] === undefined);
    if (missing) return { code: 'missing_field', at: [missing], message: `is required with type ${media.type}` };
    if (media[excludes] === undefined) return null;
    return { code: 'invalid_value', at: [excludes], message: `must be absent with type ${media.type}` };
  });
}

export const ImageInput = described(
  v.pipe(strictObject(members), fitting()),
  'An image: JPEG, PNG, WebP or GIF, up to 40 megapixels, as base64 or at an address whose host the server allows. ' +
    'At most 16 in a request.',
);
export const AudioInput = described(
  v.pipe(strictObject(members), fitting()),
  'A recording: WAV, MP3, FLAC or Ogg (Vorbis, Opus), up to 600 seconds, as base64 or at an address whose host the ' +
    'server allows. At most 16 in a request.',
);
export type MediaInput = Source;

export const TextPart = strictObject({ type: v.literal('text'), text: v.string() });

export const ImageUrl = strictObject({
  url: nonEmpty,
  detail: v.exactOptional(v.picklist(['low', 'high', 'auto'])),
});
export const ImageUrlPart = strictObject({ type: v.literal('image_url'), image_url: ImageUrl });
export const ImagePart = strictObject({ type: v.literal('image'), image: ImageInput });
export const AudioPart = strictObject({ type: v.literal('audio'), audio: AudioInput });

export const InputAudio = strictObject({
  data: described(nonEmpty, 'The recording in base64.'),
  format: described(nonEmpty, 'Format of the file, such as wav or mp3.'),
});
export const InputAudioPart = strictObject({ type: v.literal('input_audio'), input_audio: InputAudio });

export const ContentPart = variant('type', [TextPart, ImageUrlPart, ImagePart, AudioPart, InputAudioPart]);
export type ContentPart = v.InferOutput<typeof ContentPart>;

export const MessageContent = v.union([v.string(), v.pipe(v.array(ContentPart), v.minLength(1))]);

/** One message of a request to the decision service: its role and content (docs/interface.md, D-8). */
export const Message = strictObject({
  role: described(v.picklist(['system', 'developer', 'user', 'assistant']), 'developer is treated as system.'),
  content: MessageContent,
  name: exactOptional(v.string(), 'Name of the speaker. The model reads it before the content.'),
});
export type Message = v.InferOutput<typeof Message>;

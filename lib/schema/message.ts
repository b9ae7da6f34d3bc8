import * as v from 'valibot';
import { strictObject, variant } from '../validation/objects.ts';
import { AudioInput, ImageInput } from './media.ts';

export const TextPart = strictObject({ type: v.literal('text'), text: v.string() });

export const ImageUrl = strictObject({
  url: v.pipe(v.string(), v.minLength(1)),
  detail: v.exactOptional(v.picklist(['low', 'high', 'auto'])),
});
export const ImageUrlPart = strictObject({ type: v.literal('image_url'), image_url: ImageUrl });
export const ImagePart = strictObject({ type: v.literal('image'), image: ImageInput });
export const AudioPart = strictObject({ type: v.literal('audio'), audio: AudioInput });

export const InputAudio = strictObject({
  data: v.pipe(v.string(), v.minLength(1), v.description('The recording in base64.')),
  format: v.pipe(v.string(), v.minLength(1), v.description('Format of the file, such as wav or mp3.')),
});
export const InputAudioPart = strictObject({ type: v.literal('input_audio'), input_audio: InputAudio });

export const ContentPart = variant('type', [TextPart, ImageUrlPart, ImagePart, AudioPart, InputAudioPart]);
export type ContentPart = v.InferOutput<typeof ContentPart>;

export const MessageContent = v.union([v.string(), v.pipe(v.array(ContentPart), v.minLength(1))]);

/** One message of a request to the decision service: its role and content (docs/interface.md, D-8). */
export const Message = strictObject({
  role: v.pipe(
    v.picklist(['system', 'developer', 'user', 'assistant']),
    v.description('developer is treated as system.'),
  ),
  content: MessageContent,
  name: v.exactOptional(
    v.pipe(v.string(), v.description('Name of the speaker. The model reads it before the content.')),
  ),
});
export type Message = v.InferOutput<typeof Message>;

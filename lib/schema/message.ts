import * as v from 'valibot';
import { AudioInput, ImageInput } from './media.ts';

export const TextPart = v.strictObject({ type: v.literal('text'), text: v.string() });

export const ImageUrl = v.strictObject({
  url: v.pipe(v.string(), v.minLength(1)),
  detail: v.exactOptional(v.picklist(['low', 'high', 'auto'])),
});
export const ImageUrlPart = v.strictObject({ type: v.literal('image_url'), image_url: ImageUrl });
export const ImagePart = v.strictObject({ type: v.literal('image'), image: ImageInput });
export const AudioPart = v.strictObject({ type: v.literal('audio'), audio: AudioInput });

export const InputAudio = v.strictObject({
  data: v.pipe(v.string(), v.minLength(1), v.description('The recording in base64.')),
  format: v.pipe(v.string(), v.minLength(1), v.description('Format of the file, such as wav or mp3.')),
});
export const InputAudioPart = v.strictObject({ type: v.literal('input_audio'), input_audio: InputAudio });

export const ContentPart = v.variant('type', [TextPart, ImageUrlPart, ImagePart, AudioPart, InputAudioPart]);
export type ContentPart = v.InferOutput<typeof ContentPart>;

export const MessageContent = v.union([v.string(), v.pipe(v.array(ContentPart), v.minLength(1))]);

/** One message of a request to the decision service: its role and content (docs/interface.md, D-8). */
export const Message = v.strictObject({
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

import * as v from 'valibot';
import { expect, test } from 'vitest';
import { ChatCompletionRequest } from '../../../lib/schema/chat-request.ts';
import { chatContent, withoutContent } from './media-file.ts';

const image = { name: 'a.png', kind: 'image', url: 'data:image/png;base64,AAAA' } as const;
const audio = { name: 'a.wav', kind: 'audio', url: 'data:audio/wav;base64,BBBB' } as const;
const text = { type: 'text', text: 'What is this?' };
const picture = { type: 'image_url', image_url: { url: image.url } };
const sound = { type: 'audio', audio: { type: 'base64', mime_type: 'audio/wav', data: 'BBBB' } };

test.each([
  [undefined, text.text, text.text],
  [image, text.text, [picture, text]],
  [audio, text.text, [sound, text]],
  [image, '', [picture]],
])('%j with the text %j becomes the content of a message, which the server accepts', (media, question, content) => {
  expect(chatContent(question, media)).toEqual(content);
  v.parse(ChatCompletionRequest, { messages: [{ role: 'user', content }] });
});

test('removes the content of a file from the code that is shown', () => {
  expect(withoutContent(image).url).toBe('data:image/png;base64,BASE64_OF_a.png');
});

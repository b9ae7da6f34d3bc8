import { expect, it } from 'vitest';
import type { MediaPart } from '../../../lib/contract/conversation.ts';
import type { Work } from '../../protocol/messages.ts';
import { withoutFiles } from './work-media.ts';

const image = (source: MediaPart['source'], param: string): MediaPart => ({ type: 'image', source, param });
const text = { type: 'text' as const, text: 'AAAA' };
const settings = { model: 'a/b', tasks: [], temperature: 0, maxOutputTokens: 16 };
/** Description of a file of three zero bytes. The hash was computed by sha256sum. */
const DESCRIBED = '3 bytes, sha256 709e80c88487a2411e1ee4dfb9f22a861492d20c4765150c0c794abd70f8147c';

it('a logged request has the size and hash of each file in place of the file', () => {
  const sent = image({ type: 'base64', mimeType: 'image/png', data: 'AAAA' }, 'images[0]');
  const inUrl = image({ type: 'url', url: 'data:image/png;base64,AAAA' }, 'messages[0].content[1]');
  const address = image({ type: 'url', url: 'https://a.example/b.png' }, 'messages[0].content[2]');
  const messages = [{ role: 'user' as const, parts: [text, inUrl, address] }];
  const work: Work = { kind: 'tasks', batch: { ...settings, input: { messages }, media: [sent] } };
  const described = (part: MediaPart, mimeType: string) => ({
    ...part,
    source: { type: 'base64', mimeType, data: DESCRIBED },
  });
  expect(withoutFiles(work)).toEqual({
    kind: 'tasks',
    batch: {
      ...settings,
      input: { messages: [{ role: 'user', parts: [text, described(inUrl, 'image/png'), address] }] },
      media: [described(sent, 'image/png')],
    },
  });
});

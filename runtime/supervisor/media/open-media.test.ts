import { describe, expect, it } from 'vitest';
import type { MediaPart } from '../../../lib/contract/conversation.ts';
import type { Work } from '../../protocol/messages.ts';
import { mediaBytes, withoutFiles } from './open-media.ts';

const PNG = Buffer.from('\x89PNG\r\n\x1a\n and the rest', 'latin1').toString('base64');
const JPEG = Buffer.from('\xff\xd8\xff and the rest', 'latin1').toString('base64');
const part = (source: MediaPart['source']): MediaPart => ({ type: 'image', source, param: 'images[3]' });
const base64 = (data: string, mimeType = 'image/png') => part({ type: 'base64', data, mimeType });
const url = (text: string) => part({ type: 'url', url: text });

describe('a file', () => {
  it.each<[string, MediaPart]>([
    ['as base64', base64(PNG)],
    ['in lines', base64(PNG.replace(/(.{8})/gu, '$1\r\n'))],
    ['as a data URL', url(`data:image/png;base64,${PNG}`)],
    ['with parameters', url(`DATA:image/png;name=a.png;BASE64,${PNG}`)],
    ['under another name of its type', base64(JPEG, 'image/jpg')],
    ['under no certain type', base64(JPEG, 'image/*')],
    ['under another type', base64(JPEG, 'image/png')],
    ['as a data URL of another type', url(`data:image/gif;base64,${PNG}`)],
  ])('%s', (_, sent) => {
    expect(Buffer.from(mediaBytes(sent) ?? []).toString('latin1')).toContain('and the rest');
  });
});

it('a web address has no file here', () => {
  expect(mediaBytes(url('https://example.com/a.png'))).toBe(null);
});

describe('refused, with the path', () => {
  it.each<[string, MediaPart, RegExp]>([
    ['no bytes', base64(''), /not in a supported format/],
    ['a data URL without a file', url('data:image/png;base64,'), /not in a supported format/],
    ['text', base64(Buffer.from('hello, hello').toString('base64'), 'text/plain'), /Send JPEG, PNG, WEBP, GIF/],
    [
      'SVG',
      base64(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>').toString('base64'), 'image/svg+xml'),
      /not in/,
    ],
    ['cut base64', base64(PNG.slice(0, -2)), /not valid base64/],
    ['letters that base64 has not', base64(`${PNG.slice(0, -4)}*...`), /not valid base64/],
    ['the letters of base64url', base64('_-__'), /not valid base64/],
    ['a data URL without base64', url('data:image/png,abc'), /neither a data: URL/],
    ['a file of the server', url('file:///etc/passwd'), /neither a data: URL/],
    ['nonsense', url('nonsense'), /neither a data: URL/],
  ])('%s', (_, sent, message) => {
    expect(() => mediaBytes(sent)).toThrowError(expect.objectContaining({ code: 'invalid_value', param: 'images[3]' }));
    expect(() => mediaBytes(sent)).toThrowError(message);
  });
});

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

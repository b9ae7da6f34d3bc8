import { expect, test } from 'vitest';
import { type DataUrlFile, dataUrlOf, splitDataUrl } from './data-url.ts';

test.each<[string, DataUrlFile | null]>([
  ['data:image/png;base64,AAAA', { mimeType: 'image/png', data: 'AAAA' }],
  ['DATA:image/png;BASE64,AAAA', { mimeType: 'image/png', data: 'AAAA' }],
  ['data:audio/ogg; codecs=opus;base64,AA==', { mimeType: 'audio/ogg', data: 'AA==' }],
  ['data:;base64,AAAA', { mimeType: '', data: 'AAAA' }],
  ['data:image/png;base64,', { mimeType: 'image/png', data: '' }],
  ['data:text/plain,hello', null],
  ['data:image/png;base64', null],
  [`data:image/png;${'x'.repeat(1000)};base64,AAAA`, null],
  ['https://images.example.com/a.png', null],
])('splits %s', (url, file) => {
  expect(splitDataUrl(url)).toEqual(file);
});

test('a data URL is split into what it was made of', () => {
  const file = { mimeType: 'image/webp', data: 'UklGRg==' };
  expect(splitDataUrl(dataUrlOf(file))).toEqual(file);
});

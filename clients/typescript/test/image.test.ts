import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssayError, imageInput } from 'assay-client';

const bytes = (text: string) => Buffer.from(text, 'latin1');

test('an image is sent as base64, with the type of its first bytes', () => {
  const large = Buffer.concat([bytes('\x89PNG\r\n\x1a\n'), Buffer.alloc(100_000, 7)]);
  assert.deepEqual(imageInput(large), { type: 'base64', mime_type: 'image/png', data: large.toString('base64') });
  assert.equal(imageInput(bytes('\xff\xd8\xff\xe0')).mime_type, 'image/jpeg');
  assert.equal(imageInput(bytes('RIFF....WEBPVP8 ')).mime_type, 'image/webp');
  assert.equal(imageInput(bytes('GIF89a')).mime_type, 'image/gif');
});

test('other formats are refused before they are sent', () => {
  for (const other of ['', '<svg/>', 'BM', 'RIFF....WAVE']) assert.throws(() => imageInput(bytes(other)), AssayError);
});

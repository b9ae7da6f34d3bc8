import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssayError, audioInput, imageInput } from 'assay-client';

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

test('a recording is sent as base64, with the type of its first bytes', () => {
  const wave = bytes('RIFF....WAVEfmt ');
  assert.deepEqual(audioInput(wave), { type: 'base64', mime_type: 'audio/wav', data: wave.toString('base64') });
  assert.equal(audioInput(bytes('fLaC')).mime_type, 'audio/flac');
  assert.equal(audioInput(bytes('OggS')).mime_type, 'audio/ogg');
  assert.equal(audioInput(bytes('ID3\x04')).mime_type, 'audio/mpeg');
  assert.equal(audioInput(bytes('\xff\xfb\x90\x00')).mime_type, 'audio/mpeg');
});

test('other recordings are refused before they are sent', () => {
  // AAC in ADTS begins like MP3, but its header names another layer.
  for (const other of ['', '\xff', '\xff\xf1\x50\x80', 'RIFF....WEBP', '....ftypM4A ']) {
    assert.throws(() => audioInput(bytes(other)), AssayError);
  }
});

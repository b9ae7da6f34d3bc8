import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { fixture } from '../../../tests/fixture.ts';
import { sniffCodec } from '../sniff.ts';
import { statedLength } from './stated-length.ts';

const file = (name: string) => readFileSync(fixture(`media/audio/${name}`));

/** Returns what the headers of a compressed file state. */
function stated(bytes: Buffer) {
  const codec = sniffCodec(bytes);
  if (!codec || codec === 'wav') throw new Error('not a compressed file');
  return statedLength(codec, bytes);
}

/**
 * Most files have one second. Some lengths are lower bounds: MP3 may have silence at its ends, and Ogg states the ends
 * of whole pages.
 */
it.each([
  ['pair.flac', 44_100, 44_100],
  ['hour-of-silence.flac', 3600 * 8000, 8000],
  ['pair.mp3', 40 * 1152 - 2 * 4095, 44_100],
  ['pair.ogg', 29_188, 44_100],
  ['opus.ogg', 22_392, 48_000],
])('%s states %i samples at %i Hz', (name, samples, rate) => {
  expect(stated(file(name))).toMatchObject({ samples, rate });
});

const edited = (name: string, edit: (bytes: Buffer) => void) => {
  const bytes = file(name);
  edit(bytes);
  return bytes;
};

it.each([
  ['FLAC that does not know its length', edited('pair.flac', (bytes) => bytes.writeUInt32BE(0, 22))],
  ['FLAC without its first metadata block', edited('pair.flac', (bytes) => bytes.writeUInt8(4, 4))],
  ['FLAC of its first bytes alone', file('pair.flac').subarray(0, 20)],
  ['MP3 without a header of Xing', edited('pair.mp3', (bytes) => bytes.write('____', bytes.indexOf('Xing')))],
  [
    'MP3 whose header states bytes alone',
    edited('pair.mp3', (bytes) => bytes.writeUInt32BE(2, bytes.indexOf('Xing') + 4)),
  ],
  ['Ogg of its first page alone', file('pair.ogg').subarray(0, 58)],
  ['Ogg that is cut in its first header', file('opus.ogg').subarray(0, 40)],
  [
    'Ogg of two streams, the second of which ends late',
    edited('opus.ogg', (bytes) => {
      const last = bytes.lastIndexOf('OggS');
      bytes.writeBigInt64LE(10n ** 12n, last + 6);
      bytes.writeUInt32LE(77, last + 14);
    }),
  ],
])('%s states none', (_, bytes) => expect(stated(bytes)).toBe(null));

it.each([
  ['MPEG 1 at 48 kHz', 0xfb, 0x94, 1152, 48_000],
  ['MPEG 2 at 24 kHz', 0xf3, 0x94, 576, 24_000],
  ['MPEG 2.5 at 8 kHz', 0xe3, 0x98, 576, 8000],
])('MP3 of %s', (_, version, third, perFrame, rate) => {
  const bytes = edited('pair.mp3', (mp3) => {
    mp3.set([version, third], 1);
    mp3.writeUInt32BE(1000, mp3.indexOf('Xing') + 8);
  });
  expect(stated(bytes)).toEqual({ samples: 1000 * perFrame - 2 * 4095, rate });
});

it('a recording of a live Ogg stream is as long as it is, wherever its positions begin', () => {
  const day = 86_400n * 48_000n;
  const live = edited('opus.ogg', (bytes) => {
    for (let page = bytes.indexOf('OggS'); page >= 0; page = bytes.indexOf('OggS', page + 1)) {
      const position = bytes.readBigInt64LE(page + 6);
      if (position > 0n) bytes.writeBigInt64LE(position + day, page + 6);
    }
  });
  expect(stated(live)).toEqual({ samples: 22_392, rate: 48_000 });
});

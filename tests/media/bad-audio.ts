import { readFileSync } from 'node:fs';
import type { MediaPart } from '../../lib/contract/conversation.ts';
import { makeWav } from './wav.ts';

/** Holds a recording that is refused, and the reason in the error. */
export interface BadAudio {
  name: string;
  source: MediaPart['source'];
  reason: RegExp;
}

const FILES = {
  'short.wav': 'audio/wav',
  'pair.flac': 'audio/flac',
  'pair.mp3': 'audio/mpeg',
  'pair.ogg': 'audio/ogg',
  'opus.ogg': 'audio/ogg',
} as const;
const file = (name: string) => readFileSync(new URL(`../fixtures/media/audio/${name}`, import.meta.url));
const sent = (bytes: Uint8Array, mimeType: string): MediaPart['source'] => {
  return { type: 'base64', data: Buffer.from(bytes).toString('base64'), mimeType };
};

const FORMAT = /is not in a supported format\. Send WAV, MP3, FLAC, OGG\./u;
const DAMAGED = /cannot be decoded/u;
const ENCODING = /has samples in an encoding that is not supported/u;
const LONG = /is longer than 600 seconds/u;

const noise = (length: number) => Buffer.from(Array.from({ length }, (_, i) => (i * 7919 + (i >> 3)) % 251));
const bad = (name: string, bytes: Uint8Array, mimeType: string, reason: RegExp): BadAudio => ({
  name,
  source: sent(bytes, mimeType),
  reason,
});

/** Damages each format: cut at several places, and with noise inside. */
const damaged = Object.entries(FILES).flatMap(([name, type]): BadAudio[] => {
  const bytes = file(name);
  const half = Math.floor(bytes.length / 2);
  const cuts: [string, number][] = [
    ['a tenth', Math.floor(bytes.length / 10)],
    ['a half', half],
    ['all but 10 bytes', bytes.length - 10],
  ];
  return [
    ...cuts.map(([part, length]) => bad(`${part} of ${name}`, bytes.subarray(0, length), type, DAMAGED)),
    ...(type === 'audio/wav'
      ? []
      : [bad(`${name} with noise inside`, Buffer.concat([bytes.subarray(0, half), noise(half)]), type, DAMAGED)]),
  ];
});

/** Returns files of a second whose headers state eleven minutes, of each compressed format. */
export function statedTooLong(): [name: keyof typeof FILES, bytes: Buffer][] {
  const [flac, mp3, vorbis, opus] = [file('pair.flac'), file('pair.mp3'), file('pair.ogg'), file('opus.ogg')];
  flac.writeUInt32BE(660 * 44_100, 22);
  mp3.writeUInt32BE((660 * 44_100) / 1152 + 8, mp3.indexOf('Xing') + 8);
  // The position of the end of the last page.
  vorbis.writeBigInt64LE(660n * 44_100n, vorbis.lastIndexOf('OggS') + 6);
  opus.writeBigInt64LE(660n * 48_000n, opus.lastIndexOf('OggS') + 6);
  return [
    ['pair.flac', flac],
    ['pair.mp3', mp3],
    ['pair.ogg', vorbis],
    ['opus.ogg', opus],
  ];
}

/** Files of other formats, by their first bytes. */
const others: BadAudio[] = (
  [
    ['M4A', '\0\0\0\x20ftypM4A \0\0\0\0', 'audio/mp4'],
    ['AAC in ADTS', '\xff\xf1\x50\x80\x02\x1f\xfc', 'audio/aac'],
    ['AIFF', 'FORM\0\0\0\x20AIFFCOMM', 'audio/aiff'],
    ['AMR', '#!AMR\n\x3c', 'audio/amr'],
    ['MIDI', 'MThd\0\0\0\x06\0\x01', 'audio/midi'],
    ['AVI, which is RIFF, too', 'RIFF\0\0\0\0AVI LIST', 'audio/wav'],
    ['RF64', 'RF64\xff\xff\xff\xffWAVEds64', 'audio/wav'],
    ['Matroska', '\x1a\x45\xdf\xa3\x01\0\0\0', 'audio/webm'],
    ['Theora in Ogg', `OggS\0\x02${'\0'.repeat(20)}\x01\x2a\x80theora`, 'audio/ogg'],
    ['FLAC in Ogg', `OggS\0\x02${'\0'.repeat(20)}\x01\x33\x7fFLAC`, 'audio/ogg'],
    ['MPEG audio of layer II', '\xff\xfd\x90\x04', 'audio/mpeg'],
    ['a PNG', '\x89PNG\r\n\x1a\n', 'audio/wav'],
    ['text', 'hello, hello, hello', 'audio/wav'],
    ['SVG', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'audio/wav'],
    ['a playlist', '#EXTM3U\nhttps://example.com/a.mp3', 'audio/mpeg'],
    ['no bytes', '', 'audio/wav'],
    ['one byte', 'R', 'audio/wav'],
  ] as const
).map(([name, text, type]) => bad(name, Buffer.from(text, 'latin1'), type, FORMAT));

/** Returns all of them. */
export const badAudio = (): BadAudio[] => [
  ...damaged,
  ...others,
  bad('WAV without samples', makeWav({}, 0), 'audio/wav', DAMAGED),
  bad('WAV of its first bytes alone', Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), 'audio/wav', DAMAGED),
  ...[0, 1, 7999, 192_001, 4_000_000_000].map((rate) =>
    bad(`WAV with a sample rate of ${rate}`, makeWav({ rate }), 'audio/wav', DAMAGED),
  ),
  ...[0, 9, 1000].map((channels) => bad(`WAV with ${channels} channels`, makeWav({ channels }), 'audio/wav', DAMAGED)),
  ...[0, 4, 12, 48].map((bits) => bad(`WAV of ${bits} bits`, makeWav({ bits }), 'audio/wav', ENCODING)),
  bad('WAV in ADPCM', makeWav({ tag: 0x11, bits: 4 }), 'audio/wav', ENCODING),
  bad('WAV that states more samples than it has', makeWav({ length: 1e9 }), 'audio/wav', DAMAGED),
  bad('WAV of floats that are no numbers', makeWav({ tag: 3, bits: 32 }).fill(255, 44), 'audio/wav', DAMAGED),
  bad('WAV of 10 minutes and a sample', makeWav({}, 4_800_001), 'audio/wav', LONG),
  ...statedTooLong().map(([name, bytes]) => bad(`${name} that states eleven minutes`, bytes, FILES[name], LONG)),
  bad('FLAC of an hour of silence', file('hour-of-silence.flac'), 'audio/flac', LONG),
  bad('MP3 that is only a tag', Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1'), 'audio/mpeg', DAMAGED),
  bad(
    'MP3 with a tag longer than the file',
    Buffer.from('ID3\x04\0\0\x7f\x7f\x7f\x7f abc', 'latin1'),
    'audio/mpeg',
    DAMAGED,
  ),
  bad('MP3 of noise', Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x64]), noise(40_000)]), 'audio/mpeg', DAMAGED),
  bad('FLAC of noise', Buffer.concat([Buffer.from('fLaC'), noise(40_000)]), 'audio/flac', DAMAGED),
  {
    name: 'wrong base64',
    source: { type: 'base64', data: 'UklGR*==', mimeType: 'audio/wav' },
    reason: /is not valid base64/u,
  },
  {
    name: 'a data URL without base64',
    source: { type: 'url', url: 'data:audio/wav,RIFF' },
    reason: /neither a data: URL/u,
  },
  { name: 'a file of the server', source: { type: 'url', url: 'file:///etc/passwd' }, reason: /neither a data: URL/u },
  { name: 'an address', source: { type: 'url', url: 'https://example.com/a.wav' }, reason: /does not fetch from/u },
];

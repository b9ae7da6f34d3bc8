import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fixture, readFixture } from '../../../tests/fixture.ts';
import { statedTooLong } from '../../../tests/media/bad-audio.ts';
import { makeWav } from '../../../tests/media/wav.ts';
import { sniffCodec } from '../sniff.ts';
import { type Decoded, decodeAudio, decodePieces, RecentAudio } from './decode-audio.ts';
import { readWav } from './read-wav.ts';

const file = (name: string) => readFileSync(fixture(`media/audio/${name}`));

interface Case {
  file: string;
  rate: number;
  samples: number;
  /** Every 97th sample from index 100 on, decoded by libsndfile, as the mean of the channels. */
  values: number[];
}
const { cases } = JSON.parse(readFixture('media/decoded.json')) as { cases: Case[] };

/** Decodes a file without resampling. */
async function decoded(bytes: Uint8Array): Promise<{ rate: number; mono: number[] }> {
  const codec = sniffCodec(bytes)!;
  if (codec === 'wav') {
    const { rate, frames, read } = readWav(bytes);
    return { rate, mono: [...read(0, frames)] };
  }
  const pieces: Decoded[] = [];
  for await (const piece of decodePieces(codec, bytes)) pieces.push(piece);
  const mono = pieces.flatMap(({ channelData, samplesDecoded }) =>
    Array.from({ length: samplesDecoded }, (_, i) => channelData.reduce((s, c) => s + c[i]! / channelData.length, 0)),
  );
  return { rate: pieces.find(({ samplesDecoded }) => samplesDecoded > 0)!.sampleRate, mono };
}

describe('samples are those of libsndfile', () => {
  it.each(cases.map((one) => [one.file, one] as const))('%s', async (name, { rate, samples, values }) => {
    const found = await decoded(file(name));
    expect(found.rate).toBe(rate);
    expect(found.mono.length).toBe(samples);
    // Decoders of lossy formats may round differently, by at most two steps of 16 bits.
    const most = /mp3|ogg/u.test(name) ? 2 ** -14 : 1e-6;
    const worst = values.map((value, i) => Math.abs(value - found.mono[100 + 97 * i]!));
    expect(Math.max(...worst)).toBeLessThan(most);
  });
});

/** Returns a FLAC file of an hour of silence, whose header does not state its length. */
function hourOfSilence(): Buffer {
  const bytes = file('hour-of-silence.flac');
  bytes.writeUInt32BE(0, 22);
  return bytes;
}

it('stops at a FLAC of an hour of silence, which has 89 kB and does not state its length', async () => {
  const bytes = hourOfSilence();
  const before = process.memoryUsage().arrayBuffers;
  await expect(decodeAudio(bytes)).rejects.toMatchObject({ kind: 'too_large' });
  // Ten minutes at 16 kHz take 38 MB; an hour at 8 kHz would take 115 MB.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100e6);
});

it.each(statedTooLong())('refuses %s that states eleven minutes', async (_, bytes) => {
  await expect(decodeAudio(bytes)).rejects.toMatchObject({ kind: 'too_large' });
});

it('takes no chunk after the samples for samples', async () => {
  const software = Buffer.from('LIST\x16\0\0\0INFOISFT\x0a\0\0\0some name\0', 'latin1');
  const empty = Buffer.concat([makeWav({}, 0), software]);
  await expect(decodeAudio(empty)).rejects.toMatchObject({ kind: 'undecodable', message: 'it has no samples' });
  expect((await decodeAudio(Buffer.concat([makeWav({}), software]))).length).toBe(1600);
});

it('reads WAV of a program that did not know its length', async () => {
  for (const length of [0, 0xffffffff]) expect((await decodeAudio(makeWav({ length }))).length).toBe(1600);
});

const minutes = (count: number) => new Float32Array(count * 60 * 16_000);

it('keeps 64 MiB of the recordings used last', () => {
  const recent = new RecentAudio();
  for (const name of ['a', 'b', 'c']) recent.keep(name, minutes(5));
  recent.keep('a', minutes(5));
  recent.keep('d', minutes(5));
  expect(['a', 'b', 'c', 'd'].filter((name) => recent.get(name))).toEqual(['a', 'c', 'd']);
  recent.keep('e', minutes(10));
  expect(['a', 'c', 'd', 'e'].filter((name) => recent.get(name))).toEqual(['d', 'e']);
});

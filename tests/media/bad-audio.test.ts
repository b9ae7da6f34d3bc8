import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, describe, expect, it } from 'vitest';
import type { MediaPart } from '../../lib/contract/conversation.ts';
import type { Work } from '../../runtime/protocol/messages.ts';
import { MediaProcess } from '../../runtime/supervisor/media/media-process.ts';
import { openMedia } from '../../runtime/supervisor/media/open-media.ts';
import { badAudio } from './bad-audio.ts';
import { type SilentFlac, silentFlac } from './silent-flac.ts';

const media = new MediaProcess({ log: pino({ level: 'silent' }) });
afterAll(() => media.close());

/** Opens a recording, as for a request about it, and returns its samples. */
async function open(source: MediaPart['source'], mostSamples?: number): Promise<unknown> {
  const counts = { opened() {}, decoded() {}, refused() {} };
  const audio: MediaPart = { type: 'audio', source, param: 'messages[0].content[0]' };
  const request = { messages: [{ role: 'user' as const, parts: [audio] }], stop: [], presencePenalty: 0 };
  const work: Work = { kind: 'chat', request: { ...request, frequencyPenalty: 0, format: { type: 'text' } } };
  const { signal } = new AbortController();
  const opened = await openMedia(media, { kind: 'audio', counts, fetcher: undefined, mostSamples }).open(work, signal);
  const [part] = opened.kind === 'chat' ? (opened.request.messages[0]?.parts ?? []) : [];
  return part?.type === 'audio' && part.opened && 'samples' in part.opened ? part.opened.samples : undefined;
}

const file = (name: string) => readFileSync(new URL(`../fixtures/media/audio/${name}`, import.meta.url));

describe('refused with the path of the recording', () => {
  const rows = badAudio();

  it('are at least 60', () => expect(rows.length).toBeGreaterThanOrEqual(60));

  it.each(rows)('$name', async ({ source, reason }) => {
    await expect(open(source)).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'messages[0].content[0]',
      message: expect.stringMatching(reason),
    });
  });

  it('by one and the same process, which still reads audio', async () => {
    const { pid } = media;
    expect(await open({ type: 'base64', data: file('short.wav').toString('base64'), mimeType: 'audio/wav' })).toBe(
      32_000,
    );
    expect(pid).not.toBe(null);
    expect(media.pid).toBe(pid);
  });
});

describe('a recording that decodes to very much', () => {
  const source = (flac: SilentFlac): MediaPart['source'] => {
    return { type: 'base64', data: silentFlac(flac).toString('base64'), mimeType: 'audio/flac' };
  };

  it('is read if it fits', async () => {
    expect(await open(source({ seconds: 3, rate: 48_000, channels: 8 }), 160_000)).toBeGreaterThan(40_000);
  });

  it.each<[string, SilentFlac, number | undefined, string, RegExp]>([
    [
      'in many channels',
      { seconds: 590, rate: 192_000, channels: 8 },
      undefined,
      'invalid_value',
      /57\.6 million samples/u,
    ],
    [
      'for the model',
      { seconds: 590, rate: 16_000, channels: 1 },
      160_000,
      'input_too_long',
      /longer than 10 seconds/u,
    ],
    [
      'for the model, without a stated length',
      { seconds: 60, rate: 16_000, channels: 2, stated: 0 },
      160_000,
      'input_too_long',
      /10 seconds/u,
    ],
    [
      'for the model, with a false length',
      { seconds: 60, rate: 16_000, channels: 2, stated: 9 },
      160_000,
      'input_too_long',
      /10 seconds/u,
    ],
  ])('is refused if it is too much %s', async (_, flac, mostSamples, code, message) => {
    const param = 'messages[0].content[0]';
    await expect(open(source(flac), mostSamples)).rejects.toMatchObject({
      code,
      param,
      message: expect.stringMatching(message),
    });
  });
});

it('callers take turns', async () => {
  const { signal } = new AbortController();
  const done: string[] = [];
  const ask = (caller: string, seconds: number, salt: number) => {
    const bytes = silentFlac({ seconds, rate: 48_000, channels: 2, salt });
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    return media.samples({ sha256, bytes }, signal, { caller }).then(() => done.push(caller));
  };
  await Promise.all([...[1, 2, 3, 4].map((salt) => ask('greedy', 60, salt)), ask('other', 1, 5)]);
  expect(done.indexOf('other')).toBeLessThanOrEqual(1);
});

it('the length of a recording is known the second time, without a process', async () => {
  const again = new MediaProcess({ log: pino({ level: 'silent' }) });
  const bytes = file('short.wav');
  const recording = { sha256: createHash('sha256').update(bytes).digest('hex'), bytes };
  const { signal } = new AbortController();
  expect(await again.samples(recording, signal)).toBe(32_000);
  process.kill(again.pid!, 'SIGKILL');
  while (again.pid !== null) await setTimeout(5);
  expect(await again.samples(recording, signal)).toBe(32_000);
  expect(again.pid).toBe(null);
  again.close();
});

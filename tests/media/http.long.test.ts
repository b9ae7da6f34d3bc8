import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MediaPart } from '../../lib/contract/conversation.ts';
import { HubServer } from '../hub/hub-server.ts';
import {
  mediaProcesses,
  newBase,
  processTree,
  residentBytes,
  type ServerProcess,
  startServer,
} from '../model-server/server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { badAudio } from './bad-audio.ts';
import { badImages } from './bad-images.ts';
import { mediaFile } from './golden.ts';

/* Bad media, and kills of the media process, as callers of a real server process see them. */

const [VISION, AUDIO] = ['acme/vision', 'acme/audio'];
const KEY = 'demo';
const MIB = 2 ** 20;
/** The most that the server process may grow by. */
const GROWTH_BYTES = 256 * MIB;
/** The most memory of the media process. */
const MEDIA_BYTES = 1024 * MIB;
/** Kills; ASSAY_PROPERTY_RUNS sets more. */
const KILLS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 5);

let hub: HubServer;
let server: ServerProcess;
beforeAll(async () => {
  hub = await HubServer.start(
    await fixtureModel('../media/smolvlm', VISION),
    await fixtureModel('../media/voxtral', AUDIO),
  );
  server = await startServer(hub, await newBase(), ['--no-load', '--api-key', KEY]);
  for (const model of [VISION, AUDIO]) await post('/download', { model });
}, 120_000);
afterAll(async () => {
  await server?.stop();
  await hub?.stop();
});

const post = (path: string, body: object) => server.call('POST', path, body, { authorization: `Bearer ${KEY}` });
const load = async (model: string) => expect((await post('/load', { model })).status).toBe(200);
const QUESTION = { question: 'Is it?', options: ['yes', 'no'] };
const ask = (body: object) => post('/decide', { context: '', ...QUESTION, ...body });

/** Writes a source as a request has it. */
function inputOf(source: MediaPart['source']): object {
  if (source.type === 'url') return source;
  return { type: 'base64', data: source.data, mime_type: source.mimeType };
}

/** Linux alone says how much memory a process had at its peak. */
async function peakBytes(): Promise<number> {
  const [pid] = (await mediaProcesses(server.pid)).slice(-1);
  const status = pid === undefined ? '' : readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s*(\d+) kB/u.exec(status)?.[1] ?? 0) * 1024;
}

describe.each([
  ['images', VISION, badImages, 'wide.png'],
  ['audio', AUDIO, badAudio, 'short.wav'],
] as const)('bad %s', (member, model, badMedia, file) => {
  it('are refused with param, by processes that keep their memory', { timeout: 300_000 }, async () => {
    await load(model);
    const { data, mimeType } = mediaFile(file);
    const good = { model, [member]: [{ type: 'base64', data, mime_type: mimeType }] };
    expect((await ask(good)).status).toBe(200);
    const before = await residentBytes(server.pid, { children: false });
    const processes = await processTree(server.pid);
    const wrong: string[] = [];
    for (const { name, source, reason } of await badMedia()) {
      const { status, body } = await ask({ model, [member]: [inputOf(source)] });
      const { code, param, message } = body.error ?? {};
      // Empty members are refused before the file is looked at.
      const early = code === 'invalid_value' && /must not be empty/u.test(message) && param.startsWith(`${member}[0].`);
      const late = code === 'invalid_value' && param === `${member}[0]` && reason.test(message);
      if (status < 400 || status >= 500 || !(early || late)) wrong.push(`${name}: ${status} ${JSON.stringify(body)}`);
    }
    expect(wrong).toEqual([]);
    expect((await ask(good)).status).toBe(200);
    expect(await processTree(server.pid)).toEqual(processes);
    expect((await residentBytes(server.pid, { children: false })) - before).toBeLessThan(GROWTH_BYTES);
    expect(await peakBytes()).toBeLessThan(MEDIA_BYTES);
  });
});

it(`${KILLS} kills of the media process lose no request but their own`, {
  timeout: 120_000 + KILLS * 10_000,
}, async () => {
  await load(VISION);
  const before = await residentBytes(server.pid, { children: false });
  let killed = 0;
  const ends = { answered: 0, texts: 0, lost: 0, wrong: [] as string[] };
  const kills = (async () => {
    while (killed < KILLS) {
      // Every third dies as soon as it is seen; the others have answered before.
      const answered = ends.answered;
      for (let waited = 0; killed % 3 > 0 && ends.answered === answered && waited < 5_000; waited += 20)
        await sleep(20);
      await sleep(Math.random() * 100);
      const [pid] = (await mediaProcesses(server.pid)).slice(-1);
      if (pid === undefined) continue;
      process.kill(pid, 'SIGKILL');
      killed++;
    }
  })();
  await Promise.all([
    kills,
    ...Array.from({ length: 6 }, async (_, client) => {
      for (let n = 0; killed < KILLS; n++) {
        const text = client >= 4;
        const images = text ? [] : [{ type: 'base64', mime_type: 'image/png', data: await newImage() }];
        const { status, body } = await ask({ model: VISION, context: `${client} ${n}`, images });
        if (status === 200) ends[text ? 'texts' : 'answered']++;
        else if (!text && body.error?.param === 'images[0]' && /decoder ended/u.test(body.error.message)) ends.lost++;
        else ends.wrong.push(`${status} ${JSON.stringify(body)}`);
      }
    }),
  ]);
  expect(ends.wrong).toEqual([]);
  // A request is lost when its process was killed twice.
  expect(ends.lost).toBeLessThanOrEqual(KILLS / 2);
  expect(Math.min(ends.answered, ends.texts)).toBeGreaterThan(0);
  expect((await residentBytes(server.pid, { children: false })) - before).toBeLessThan(GROWTH_BYTES);
});

/** Makes an image that no request had before, so that it has to be decoded. */
async function newImage(): Promise<string> {
  const background = { r: Math.random() * 256, g: Math.random() * 256, b: Math.random() * 256 };
  const create = { width: 640, height: 480, channels: 3 as const, background };
  return (await sharp({ create }).png().toBuffer()).toString('base64');
}

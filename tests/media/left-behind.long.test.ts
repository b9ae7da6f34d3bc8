import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openIsolation } from '../../runtime/supervisor/isolation/isolation.ts';
import { MediaProcess } from '../../runtime/supervisor/media/media-process.ts';
import { HubServer } from '../hub/hub-server.ts';
import { mediaProcesses, newBase, processTree, type ServerProcess, startServer } from '../model-server/server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { mediaFile } from './golden.ts';

/* No process stays when the media process, a process around it, or the server is killed. */

const MODEL = 'acme/vision';
const KEY = 'demo';
const linux = it.runIf(process.platform === 'linux');

let hub: HubServer;
let server: ServerProcess;
beforeAll(async () => {
  hub = await HubServer.start(await fixtureModel('../media/smolvlm', MODEL));
  server = await startServer(hub, await newBase(), ['--no-load', '--api-key', KEY]);
  for (const path of ['/download', '/load']) expect((await post(path, { model: MODEL })).status).toBe(200);
}, 120_000);
afterAll(async () => {
  await server?.stop();
  await hub?.stop();
});

const post = (path: string, body: object) => server.call('POST', path, body, { authorization: `Bearer ${KEY}` });

/** Asks about an image. Each image is asked about once, so that the media process has to decode it. */
async function ask(file: string): Promise<number> {
  const { data, mimeType } = mediaFile(file);
  const images = [{ type: 'base64', data, mime_type: mimeType }];
  const question = { context: '', question: 'Is it?', options: ['yes', 'no'] };
  return (await post('/decide', { model: MODEL, ...question, images })).status;
}

/** Returns those of these processes that run. One that has ended may stay as a zombie until init asks for it. */
async function running(pids: readonly number[]): Promise<number[]> {
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  return pids.filter((_, i) => /\) [^Z] [^)]*$/u.test(stats[i] ?? ''));
}

/** With bwrap these are three processes: bwrap, its child, and Node. */
linux('of the media process and those around it, whichever is killed', { timeout: 120_000 }, async () => {
  expect(await ask('strip.gif')).toBe(200);
  const files = ['wide.png', 'tall.jpg', 'tile-a.png'];
  for (let place = 0; place < (await mediaProcesses(server.pid)).length; place++) {
    const around = await mediaProcesses(server.pid);
    process.kill(around[place] ?? 0, 'SIGKILL');
    await expect.poll(() => running(around), { timeout: 5_000 }).toEqual([]);
    expect(await ask(files[place] ?? '')).toBe(200);
  }
});

linux('of all processes, if the server is killed while images are decoded', { timeout: 60_000 }, async () => {
  expect(await ask('large.png')).toBe(200);
  const all = await processTree(server.pid);
  expect(all.length).toBeGreaterThan(2);
  const asked = Promise.allSettled(['square.webp', 'tile-b.png'].map(ask));
  await sleep(20);
  await server.kill();
  await expect.poll(() => running(all), { timeout: 5_000 }).toEqual([]);
  await asked;
});

/** Returns the ids of all processes of this machine that were started with this text in their environment. */
async function processesMarked(mark: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/u.test(name));
  const environments = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')));
  return pids.filter((_, i) => environments[i]?.includes(mark));
}

/** Ends of a media process, spread over its first milliseconds; ASSAY_PROPERTY_RUNS sets more. */
const ENDS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 40);

linux.each<[times: number, how: string, end: (media: MediaProcess) => void]>([
  [ENDS, 'ended', (media) => media.close()],
  [ENDS / 2, 'killed by something else', ({ pid }) => void (pid && process.kill(pid, 'SIGKILL'))],
])('of %i media processes that are %s while they start', { timeout: 30_000 + ENDS * 2_000 }, async (times, _, end) => {
  const isolation = await openIsolation('auto');
  const { signal } = new AbortController();
  process.env.LC_ASSAY_MARK = randomUUID();
  for (let i = 0; i < times; i++) {
    const media = new MediaProcess({ log: pino({ level: 'silent' }), isolation });
    const asked = media.size({ sha256: '', bytes: Buffer.from('no image') }, signal).catch(() => {});
    await sleep((i / times) * 40);
    end(media);
    // Until the next process answers, if this one was killed.
    await asked;
    media.close();
  }
  await expect.poll(() => processesMarked(process.env.LC_ASSAY_MARK ?? ''), { timeout: 5_000 }).toEqual([]);
});

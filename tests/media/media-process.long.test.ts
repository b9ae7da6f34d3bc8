import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, expect, it } from 'vitest';
import { openIsolation } from '../../runtime/supervisor/isolation/isolation.ts';
import { MediaProcess } from '../../runtime/supervisor/media/media-process.ts';

const log = pino({ level: 'silent' });
const media = new MediaProcess({ log, isolation: await openIsolation('auto') });
afterAll(() => media.close());

const fileOf = (bytes: Uint8Array) => ({ sha256: createHash('sha256').update(bytes).digest('hex'), bytes });
const named = (text: string) => fileOf(Buffer.from(text));
const image = (file: string) => fileOf(readFileSync(new URL(`../fixtures/media/images/${file}`, import.meta.url)));
const { signal } = new AbortController();
const PLAN = {
  filter: 'lanczos' as const,
  sizes: [{ width: 256, height: 192 }],
  rows: 3,
  columns: 4,
  tile: { width: 64, height: 64 },
};

/** Kills; ASSAY_PROPERTY_RUNS sets more. */
const KILLS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 20);

it(`${KILLS} kills under load lose no request but their own`, { timeout: 60_000 + KILLS * 3_000 }, async () => {
  const files = ['large.png', 'square.webp', 'tall.jpg', 'strip.gif'].map(image);
  const expected = await Promise.all(files.map((file) => media.prepare(file, PLAN, signal)));
  let killing = true;
  let killed = 0;
  const kills = (async () => {
    for (; killed < KILLS; killed++) {
      const { pid } = media;
      if (pid !== null) process.kill(pid, 'SIGKILL');
      while (media.pid === pid || media.pid === null) await setTimeout(1);
      await setTimeout(Math.random() * 600);
    }
    killing = false;
  })();
  let answered = 0;
  let lost = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (killing) {
        const index = Math.floor(Math.random() * files.length);
        const result = await media.prepare(files[index]!, PLAN, signal).catch((fault) => fault.kind);
        if (result === 'crash') lost++;
        else {
          expect(result).toEqual(expected[index]);
          answered++;
        }
      }
    }),
  );
  await kills;
  // A request is lost when its process was killed twice.
  expect(lost).toBeLessThanOrEqual(KILLS / 2);
  expect(answered).toBeGreaterThan(0);
});

it.each(['hang', 'wait'])('a decoder that does %s ends its own request; the next ones are answered', async (fault) => {
  const entry = new URL('./hanging-child.ts', import.meta.url);
  const hanging = new MediaProcess({ log, entry, timeoutMs: 2_000 });
  const [hung, fine] = await Promise.allSettled([
    hanging.size(named(fault), signal),
    hanging.size(named('fine'), signal),
  ]);
  hanging.close();
  expect(hung).toMatchObject({ status: 'rejected', reason: { kind: 'slow' } });
  expect(fine).toMatchObject({ status: 'fulfilled', value: { width: 1, height: 1 } });
});

it.runIf(process.platform === 'linux')('a decoder that gets little processor time may take longer', async () => {
  const entry = new URL('./hanging-child.ts', import.meta.url);
  const starved = new MediaProcess({ log, entry, timeoutMs: 1_000 });
  await starved.size(named('start'), signal);
  expect(await starved.size(named('starved'), signal)).toEqual({ width: 1, height: 1 });
  starved.close();
});

it('an image that ends the process is refused after two tries; the next ones are answered', async () => {
  const entry = new URL('./hanging-child.ts', import.meta.url);
  const crashing = new MediaProcess({ log, entry });
  const [crashed, fine] = await Promise.allSettled([
    crashing.size(named('crash'), signal),
    crashing.size(named('fine'), signal),
  ]);
  crashing.close();
  expect(crashed).toMatchObject({ status: 'rejected', reason: { kind: 'crash' } });
  expect(fine).toMatchObject({ status: 'fulfilled', value: { width: 1, height: 1 } });
});

it('the file of a caller who has left is not decoded', async () => {
  const entry = new URL('./hanging-child.ts', import.meta.url);
  const deaths: unknown[] = [];
  const counting = pino({}, { write: (line) => deaths.push(JSON.parse(line)) });
  const process = new MediaProcess({ log: counting, entry, timeoutMs: 2_000 });
  const caller = new AbortController();
  const results = Promise.allSettled([
    process.size(named('hang'), caller.signal),
    process.size(named('crash'), caller.signal),
    process.size(named('fine'), signal),
  ]);
  caller.abort('left');
  const left = { status: 'rejected', reason: 'left' };
  expect(await results).toMatchObject([left, left, { status: 'fulfilled' }]);
  process.close();
  // The one that waited would have ended the process.
  expect(deaths).toEqual([]);
});

import { expect, test } from 'vitest';
import { FREE_PER_MINUTE, slowGuesses } from './guesses.ts';

/** A clock that stands still, and keeps how long it was asked to wait. */
function stopped() {
  const waits: number[] = [];
  const clock = {
    time: 0,
    waits,
    now: () => clock.time,
    sleep: async (ms: number) => void waits.push(ms),
  };
  return clock;
}
const from = (remoteAddress: string) => ({ incoming: { socket: { remoteAddress } } });
const request = new Request('http://127.0.0.1/');
const answers = (status: number) => () => new Response(null, { status });

async function send(fetch: ReturnType<typeof slowGuesses>, count: number, address: string): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => fetch(request, from(address))));
}

test('refusals beyond those that are free are held back, the more the longer', async () => {
  const clock = stopped();
  const fetch = slowGuesses(answers(401), clock);
  await send(fetch, FREE_PER_MINUTE, '10.0.0.1');
  expect(clock.waits).toEqual([]);
  await send(fetch, 12, '10.0.0.1');
  expect(clock.waits).toEqual([1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 10_000, 10_000]);
  clock.waits.length = 0;
  await send(fetch, 1, '10.0.0.1');
  expect(clock.waits).toEqual([1000]);
  await send(fetch, FREE_PER_MINUTE, '10.0.0.2');
  expect(clock.waits).toEqual([1000]);
  clock.time += 60_000;
  await send(fetch, FREE_PER_MINUTE, '10.0.0.1');
  expect(clock.waits).toEqual([1000]);
});

test.each([200, 400, 403, 429])('an answer with status %i is never held back', async (status) => {
  const clock = stopped();
  await send(slowGuesses(answers(status), clock), 2 * FREE_PER_MINUTE, '10.0.0.1');
  expect(clock.waits).toEqual([]);
});

import { expect, test } from 'vitest';
import { AssayError, type ErrorCode } from '../../../lib/errors.ts';
import type { Outcome } from '../upstreams/fleet.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { RetryBudget, tryUpstreams } from './try-upstreams.ts';
import { UpstreamFault } from './upstream-fault.ts';

const boxes = ['a', 'b', 'c', 'd'].map(
  (name) => ({ name, url: '', key_secret: '', models: [], weight: 1 }) as Upstream,
);

/** Describes what a box does with a request: it answers, or fails with a code after some milliseconds. */
type Does = 'answers' | { code: ErrorCode; broken?: boolean; afterMs?: number };

async function run(does: readonly Does[], budget = new RetryBudget()) {
  let now = 0;
  const outcomes: Outcome[] = [];
  const answers = tryUpstreams<string>(boxes.slice(0, does.length), {
    budget,
    now: () => now,
    attempt: () => ({ saw: () => {}, end: (outcome) => void outcomes.push(outcome) }),
    async *ask({ name }) {
      const does1 = does[boxes.findIndex((box) => box.name === name)]!;
      if (does1 === 'answers') return void (yield name);
      const { code, broken = true, afterMs = 0 } = does1;
      now += afterMs;
      const error = new AssayError(code, code);
      throw code === 'timeout' ? error : new UpstreamFault(error, broken);
    },
    isOutput: () => true,
    isLast: () => true,
  });
  try {
    for await (const answer of answers) return { answer, outcomes };
  } catch (error) {
    return { code: (error as AssayError).code, message: (error as AssayError).message, outcomes };
  }
  throw new Error('neither an answer nor an error');
}

const died: Does = { code: 'engine_failed' };
const down: Does = { code: 'backend_unreachable' };
const cut: Does = { code: 'backend_unreachable', afterMs: 5_000 };
const other: Does = { code: 'model_not_loaded', broken: false };

test.each<[string, Does[], string, number]>([
  ['one box died', [died, 'answers'], 'b', 2],
  ['two boxes died: the third one is not tried', [died, died, 'answers'], 'engine_failed', 2],
  ['a box died, and one broke off after seconds', [died, cut, 'answers'], 'engine_failed', 2],
  ['boxes that are down never had the request', [down, down, 'answers'], 'c', 3],
  ['a box died, and one is down', [down, died, 'answers'], 'c', 3],
  ['boxes with another model never had the request', [other, other, 'answers'], 'c', 3],
  ['a request that is late is not tried again', [{ code: 'timeout' }, 'answers'], 'timeout', 1],
])('%s', async (_, does, result, attempts) => {
  const { answer, code, outcomes } = await run(does);
  expect(answer ?? code).toBe(result);
  expect(outcomes).toHaveLength(attempts);
});

test('the refusal says why, and to whom the late and dead attempts count', async () => {
  expect((await run([died, died])).message).toMatch(/2 boxes failed .* while they had this request/u);
  expect((await run([died, died])).outcomes).toEqual(['failed', 'failed']);
  expect((await run([{ code: 'timeout' }])).outcomes).toEqual(['late']);
});

test('retries are bounded to a fifth of the requests', async () => {
  const budget = new RetryBudget();
  let retried = 0;
  for (let i = 0; i < 1_000; i++) retried += (await run([died, 'answers'], budget)).outcomes.length - 1;
  expect(retried).toBeGreaterThanOrEqual(200);
  expect(retried).toBeLessThanOrEqual(210);
});

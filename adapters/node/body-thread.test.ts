import { afterAll, expect, test } from 'vitest';
import { BodyThread } from './body-thread.ts';

const PATH = '/v1/tasks';
const signal = new AbortController().signal;
const thread = new BodyThread();
afterAll(() => thread.close());

/** A body whose pattern takes more steps than the thread that serves requests may spend. */
const body = (pattern: string, more: object = {}) =>
  JSON.stringify({
    model: 'assay/starter',
    context: 'x',
    tasks: [
      {
        type: 'extract',
        name: 't',
        instruction: 'x',
        schema: { type: 'object', properties: { v: { type: 'string', pattern } } },
      },
    ],
    ...more,
  });
const LONG = '^(a|b)*a(a|b){9}$';
const TOO_LONG = '^(a|b)*a(a|b){12}$';

test('a body whose schemas compile is right', async () => {
  await expect(thread.check({ path: PATH, text: body(LONG) }, 'a', signal)).resolves.toBeUndefined();
});

test.each([
  [
    'a pattern that needs too many states',
    body(TOO_LONG),
    'unsupported_schema',
    'tasks[0].schema.properties.v.pattern',
  ],
  ['a value of another type', body(LONG, { temperature: 'x' }), 'invalid_type', 'temperature'],
])('%s is refused as the handler would', async (_, text, code, param) => {
  await expect(thread.check({ path: PATH, text }, 'a', signal)).rejects.toMatchObject({ code, param });
});

test('callers take turns, and one that left is passed over', async () => {
  const order: string[] = [];
  const left = new AbortController();
  const asked = ['a1', 'a2', 'a3', 'a4', 'b1'].map((name) =>
    thread
      .check({ path: PATH, text: body(LONG) }, name.slice(0, 1), name === 'a3' ? left.signal : signal)
      .then(() => order.push(name))
      .catch(() => order.push(`${name} left`)),
  );
  left.abort();
  await Promise.all(asked);
  expect(order.indexOf('b1')).toBeLessThan(order.indexOf('a4'));
  expect(order).toContain('a3 left');
});

test('a caller with many bodies that wait is refused', async () => {
  const own = new BodyThread();
  const asked = Array.from({ length: 66 }, () => own.check({ path: PATH, text: body(LONG) }, 'a', signal));
  const settled = Promise.allSettled(asked);
  await expect(asked[65]).rejects.toMatchObject({ code: 'overloaded', retryAfterSeconds: 2 });
  await own.close();
  await settled;
});

test('when the thread ends, bodies that wait fail', async () => {
  const own = new BodyThread();
  const asked = ['a', 'b'].map((caller) => own.check({ path: PATH, text: body(LONG) }, caller, signal));
  const settled = Promise.allSettled(asked);
  await own.close();
  for (const one of await settled)
    expect(one).toMatchObject({ status: 'rejected', reason: { code: 'internal_error' } });
});

import type { Random } from '../../runtime/engine/random.ts';

/** A request of the load. */
export interface Operation {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  accept?: string;
}

export const STARTER = 'assay/starter';
/** The model that the test hub offers. */
export const TINY = 'acme/tiny';

const WORDS =
  'parcel late mug broken refund invoice angry thanks tomorrow Berlin server down ünïcode 日本 <|im_end|>'.split(' ');
const text = (random: Random, most: number): string =>
  Array.from({ length: 1 + integer(random, most) }, () => pick(random, WORDS)).join(' ');

const integer = (random: Random, below: number): number => Math.floor(random.uniform() * below);
const pick = <T>(random: Random, list: readonly T[]): T => list[integer(random, list.length)] as T;
const post = (path: string, body: unknown, accept?: string): Operation => ({
  method: 'POST',
  path,
  body,
  ...(accept === undefined ? {} : { accept }),
});
const EVENTS = 'text/event-stream';
const OPTIONS = ['yes', 'no', 'perhaps'];

type Make = (random: Random) => Operation;

const tasks: Make = (random) =>
  post('/v1/tasks', {
    model: STARTER,
    context: text(random, 200),
    max_output_tokens: 8 + integer(random, 32),
    tasks: Array.from({ length: 1 + integer(random, 16) }, (_, i) =>
      i % 3 === 2
        ? { type: 'extract', name: `t${i}`, instruction: text(random, 4), keys: ['item', 'delay'] }
        : { type: 'decide', name: `t${i}`, question: text(random, 6), options: OPTIONS },
    ),
  });
const question = (random: Random) => ({ type: 'predicate', name: 'q', instructions: text(random, 5) });
const chat = (random: Random, stream: boolean): Operation =>
  post(
    '/v1/chat/completions',
    {
      model: pick(random, [STARTER, STARTER, STARTER, TINY]),
      messages: [{ role: 'user', content: text(random, 60) }],
      max_tokens: 1 + integer(random, 48),
      seed: integer(random, 1000),
      stream,
    },
    stream ? EVENTS : undefined,
  );

/** Requests of callers, each with its weight. */
const CALLS: readonly [number, Make][] = [
  [4, tasks],
  [4, (r) => post('/decide', { model: STARTER, context: text(r, 300), question: text(r, 6), options: OPTIONS })],
  [3, (r) => post('/extract', { model: STARTER, context: text(r, 100), keys: ['item', 'delay'] })],
  [
    1,
    (r) =>
      post('/extract', { model: STARTER, context: text(r, 50), schema: { name: 'string', lines: [{ n: 'integer' }] } }),
  ],
  [3, (r) => post('/v1/decisions', { model: STARTER, input: text(r, 100), questions: [question(r)] })],
  [
    2,
    (r) => post('/v1/systemone', { model: STARTER, input: text(r, 100), questions: { q: { question: text(r, 5) } } }),
  ],
  [2, (r) => chat(r, false)],
  [3, (r) => chat(r, true)],
  [1, () => ({ method: 'GET', path: '/v1/models' })],
  [1, () => ({ method: 'GET', path: '/health' })],
  [1, () => ({ method: 'GET', path: `/v1/models/${STARTER}` })],
  [1, () => ({ method: 'GET', path: '/' })],
  // Refused: each in another way.
  [1, (r) => post('/decide', { model: STARTER, context: text(r, 9), qestion: 'Is it?' })],
  [1, (r) => post('/decide', { model: 'no/such', context: text(r, 9), question: 'Is it?', options: OPTIONS })],
  [1, (r) => post('/decide', { model: STARTER, context: text(r, 30_000), question: 'Is it?', options: OPTIONS })],
  [1, (r) => post('/v1/tasks', { padding: 'x'.repeat(integer(r, 4 * 1024 * 1024)) })],
];

/** Requests of the one client that changes models. It loads the starter often, so that callers get answers. */
const CHANGES: readonly [number, Make][] = [
  [4, () => post('/load', { model: STARTER })],
  [1, () => post('/load', { model: TINY })],
  [1, () => post('/unload', undefined)],
  [2, () => post('/download', { model: TINY })],
  [2, () => post('/download', { model: TINY }, EVENTS)],
  [1, () => post('/delete', { model: TINY })],
  [1, () => post('/delete', { model: TINY, compiled_only: true })],
  [1, () => ({ method: 'DELETE', path: `/v1/models/${TINY}` })],
];

/** Returns the next request of a client. */
export function nextOperation(random: Random, changesModels: boolean): Operation {
  const list = changesModels ? CHANGES : CALLS;
  const weighted = list.flatMap(([weight, make]) => Array<Make>(weight).fill(make));
  return pick(random, weighted)(random);
}

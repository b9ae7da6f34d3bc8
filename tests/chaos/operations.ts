import type { Random } from '../../runtime/engine/random.ts';
import { MEDIA_CALLS } from './media-operations.ts';
import {
  AUDIO,
  EVENTS,
  integer,
  type Make,
  type Operation,
  pick,
  post,
  STARTER,
  TINY,
  text,
  VISION,
} from './request.ts';

const OPTIONS = ['yes', 'no', 'perhaps'];

const tasks: Make = (random, model) =>
  post('/v1/tasks', {
    model,
    context: text(random, 200),
    max_output_tokens: 8 + integer(random, 32),
    tasks: Array.from({ length: 1 + integer(random, 16) }, (_, i) =>
      i % 3 === 2
        ? { type: 'extract', name: `t${i}`, instruction: text(random, 4), keys: ['item', 'delay'] }
        : { type: 'decide', name: `t${i}`, question: text(random, 6), options: OPTIONS },
    ),
  });
const question = (random: Random) => ({ type: 'predicate', name: 'q', instructions: text(random, 5) });
const chat = (random: Random, model: string, stream: boolean): Operation =>
  post(
    '/v1/chat/completions',
    {
      model: pick(random, [model, model, model, TINY]),
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
  [4, (r, model) => post('/decide', { model, context: text(r, 300), question: text(r, 6), options: OPTIONS })],
  [3, (r, model) => post('/extract', { model, context: text(r, 100), keys: ['item', 'delay'] })],
  [
    1,
    (r, model) =>
      post('/extract', { model, context: text(r, 50), schema: { name: 'string', lines: [{ n: 'integer' }] } }),
  ],
  [3, (r, model) => post('/v1/decisions', { model, input: text(r, 100), questions: [question(r)] })],
  [2, (r, model) => post('/v1/systemone', { model, input: text(r, 100), questions: { q: { question: text(r, 5) } } })],
  [2, (r, model) => chat(r, model, false)],
  [3, (r, model) => chat(r, model, true)],
  ...MEDIA_CALLS,
  [1, () => ({ method: 'GET', path: '/v1/models' })],
  [1, () => ({ method: 'GET', path: '/health' })],
  [1, (_, model) => ({ method: 'GET', path: `/v1/models/${model}` })],
  [1, () => ({ method: 'GET', path: '/' })],
  // Refused: each in another way.
  [1, (r, model) => post('/decide', { model, context: text(r, 9), qestion: 'Is it?' })],
  [1, (r) => post('/decide', { model: 'no/such', context: text(r, 9), question: 'Is it?', options: OPTIONS })],
  [1, (r, model) => post('/decide', { model, context: text(r, 30_000), question: 'Is it?', options: OPTIONS })],
  [1, (r) => post('/v1/tasks', { padding: 'x'.repeat(integer(r, 4 * 1024 * 1024)) })],
];

/** Requests of the one client that changes models. It often loads the model of the callers: they get answers. */
const CHANGES: readonly [number, Make][] = [
  [4, (_, model) => post('/load', { model })],
  [1, (r) => post('/load', { model: pick(r, [STARTER, VISION, AUDIO]) })],
  [1, () => post('/load', { model: TINY })],
  [2, (r) => post('/load', { model: pick(r, [STARTER, TINY]), keep_others: true })],
  [1, () => post('/unload', undefined)],
  [1, () => post('/unload', { model: TINY })],
  [2, () => post('/download', { model: TINY })],
  [2, () => post('/download', { model: TINY }, EVENTS)],
  [1, () => post('/delete', { model: TINY })],
  [1, () => post('/delete', { model: TINY, compiled_only: true })],
  [1, () => ({ method: 'DELETE', path: `/v1/models/${TINY}` })],
];

/** Returns the next request of a client; most are to `model`. */
export function nextOperation(random: Random, model: string, changesModels: boolean): Operation {
  const list = changesModels ? CHANGES : CALLS;
  const weighted = list.flatMap(([weight, make]) => Array<Make>(weight).fill(make));
  return pick(random, weighted)(random, model);
}

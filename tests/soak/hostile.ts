import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../runtime/engine/random.ts';
import { STARTER } from '../chaos/request.ts';

/** Milliseconds in which one key asks alone, and then beside the hostile one, before it is alone again. */
const PHASE_MS = 60_000;
const BETWEEN_MS = 2_000;
/** Milliseconds between two requests of the ordinary key. */
const EVERY_MS = 200;

const words = (random: Random, count: number) =>
  Array.from({ length: count }, () => Math.floor(random.uniform() * 1e9).toString(36)).join(' ');
const decide = (name: string, options: readonly string[]) => ({ type: 'decide', name, question: 'Which?', options });

/** Requests that cost as much as one request may, or are refused after as much work as possible. */
const EXPENSIVE: readonly ((random: Random) => [path: string, body: object])[] = [
  (random) => [
    '/v1/tasks',
    {
      context: words(random, 800),
      tasks: Array.from({ length: 64 }, (_, i) =>
        decide(
          `t${i}`,
          Array.from({ length: 100 }, (_, k) => `${k} ${words(random, 1)}`),
        ),
      ),
    },
  ],
  (random) => [
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: words(random, 1000) }], max_tokens: 4096, temperature: 1 },
  ],
  (random) => [
    '/v1/tasks',
    {
      context: words(random, 300),
      max_output_tokens: 4096,
      tasks: Array.from({ length: 16 }, (_, i) => ({
        type: 'extract',
        name: `e${i}`,
        instruction: 'All of it.',
        keys: ['a', 'b', 'c', 'd'],
      })),
    },
  ],
  (random) => ['/extract', { context: 'x', instruction: 'x', schema: wideSchema(random) }],
  () => ['/decide', { context: 'word '.repeat(3_000_000), question: 'x', options: ['a', 'b'] }],
];

function wideSchema(random: Random): object {
  const pattern = () => `^(${words(random, 12).replaceAll(' ', '|')})*[a-f]{1,40}$`;
  const members = Array.from({ length: 64 }, (_, i) => [`p${i}`, { type: 'string', pattern: pattern() }]);
  return { type: 'object', properties: Object.fromEntries(members) };
}

/** Times in ms of the ordinary key's requests, alone and beside the hostile one, and what went wrong with them. */
export interface Beside {
  alone: number[];
  beside: number[];
  problems: string[];
  /** Answers to the hostile key, by their status. */
  hostile: Map<number, number>;
}

/**
 * Asks the same small question again and again with the key `ordinary`, in turns alone and beside `clients` callers
 * with the key `hostile`, each of which sends the most expensive requests that there are. A question must get the same
 * answer each time.
 */
export async function besideHostile(
  url: string,
  keys: { ordinary: string; hostile: string },
  { minutes, clients }: { minutes: number; clients: number },
): Promise<Beside> {
  const found: Beside = { alone: [], beside: [], problems: [], hostile: new Map() };
  const post = (key: string, path: string, body: object, signal?: AbortSignal) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: STARTER, ...body }),
      ...(signal ? { signal } : {}),
    });

  async function attack(random: Random, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const [path, body] = EXPENSIVE[Math.floor(random.uniform() * EXPENSIVE.length)]!(random);
      try {
        const response = await post(keys.hostile, path, body, signal);
        await response.text();
        found.hostile.set(response.status, (found.hostile.get(response.status) ?? 0) + 1);
      } catch {
        // The phase is over, or a body was refused before all of it was sent.
      }
    }
  }

  let expected: string | undefined;
  const question = { context: 'The parcel came two weeks late and the mug is broken.', question: 'Is it good news?' };
  async function ask(times: number[], end: number): Promise<void> {
    while (performance.now() < end) {
      const begin = performance.now();
      const response = await post(keys.ordinary, '/decide', { ...question, options: ['yes', 'no'] });
      const answer = response.ok ? (await response.json()).value : `${response.status} ${await response.text()}`;
      times.push(performance.now() - begin);
      expected ??= answer;
      if (answer !== expected) found.problems.push(`${answer} instead of ${expected}`);
      await sleep(Math.max(0, EVERY_MS - (performance.now() - begin)));
    }
  }

  const end = performance.now() + minutes * 60_000;
  for (let seed = 0; performance.now() < end; ) {
    await ask(found.alone, performance.now() + PHASE_MS);
    const over = new AbortController();
    const attacks = Array.from({ length: clients }, () => attack(new Random(seed++), over.signal));
    await ask(found.beside, performance.now() + PHASE_MS);
    over.abort();
    await Promise.all(attacks);
    await sleep(BETWEEN_MS);
  }
  return found;
}

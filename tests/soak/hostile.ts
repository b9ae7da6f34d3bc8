import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Random } from '../../runtime/engine/random.ts';
import { STARTER } from '../chaos/request.ts';

/** Shortest time in ms in which one key asks alone, and then beside the hostile one, before it is alone again. */
const PHASE_MS = 60_000;
/** Number of such times in a long run. */
const PHASES = 6;
/** Milliseconds after the hostile callers begin, all at once, that are also shown apart. */
const BEGIN_MS = 5_000;
const BETWEEN_MS = 2_000;
/** Bodies of each kind that the hostile callers send in turn, made before they begin. */
const BODIES = 32;
/** Milliseconds between two requests of the ordinary key. */
const EVERY_MS = 200;

/** Stands for a word that is another one in each request: what requests have in common would come from the cache. */
const FIRST_WORD = 'FIRST-WORD';
const words = (random: Random, count: number) =>
  Array.from({ length: count }, () => Math.floor(random.uniform() * 1e9).toString(36)).join(' ');
const decide = (name: string, options: readonly string[]) => ({ type: 'decide', name, question: 'Which?', options });

/** Requests that cost as much as one request may, or are refused after as much work as possible. */
const EXPENSIVE: readonly ((random: Random) => [path: string, body: object])[] = [
  (random) => [
    '/v1/tasks',
    {
      context: `${FIRST_WORD} ${words(random, 800)}`,
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
    { messages: [{ role: 'user', content: `${FIRST_WORD} ${words(random, 1000)}` }], max_tokens: 4096, temperature: 1 },
  ],
  (random) => [
    '/v1/tasks',
    {
      context: `${FIRST_WORD} ${words(random, 300)}`,
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
  /** Those of `beside` that began in the first `BEGIN_MS` of the hostile callers. */
  atBegin: number[];
  /** Times in ms by which timers of the process that measures came late, beside the hostile key. */
  late: number[];
  problems: string[];
  /** Answers to the hostile key, by their status, and the text of errors of the server. */
  hostile: Map<string, number>;
}

/** Says whom the process of the hostile callers asks. */
interface Attack {
  url: string;
  key: string;
  clients: number;
  seed: number;
}

const post = (url: string, key: string, body: Uint8Array<ArrayBuffer> | string) =>
  fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  });

/**
 * Asks the same small question again and again with the key `ordinary`, in turns alone and beside `clients` callers
 * with the key `hostile`, each of which sends the most expensive requests that there are. Those are in a process of
 * their own, so that writing their bodies delays no measurement. A question must get the same answer each time.
 */
export async function besideHostile(
  url: string,
  keys: { ordinary: string; hostile: string },
  { minutes, clients }: { minutes: number; clients: number },
): Promise<Beside> {
  const found: Beside = { alone: [], beside: [], atBegin: [], late: [], problems: [], hostile: new Map() };
  let expected: string | undefined;
  const question = { context: 'The parcel came two weeks late and the mug is broken.', question: 'Is it good news?' };
  const body = JSON.stringify({ model: STARTER, ...question, options: ['yes', 'no'] });
  async function ask(times: number[], atBegin: number[], late: number[]): Promise<void> {
    const phaseBegin = performance.now();
    while (performance.now() < phaseBegin + phaseMs) {
      const begin = performance.now();
      const response = await post(`${url}/decide`, keys.ordinary, body);
      const answer = response.ok ? (await response.json()).value : `${response.status} ${await response.text()}`;
      const now = performance.now();
      times.push(now - begin);
      if (begin < phaseBegin + BEGIN_MS) atBegin.push(now - begin);
      expected ??= answer;
      if (answer !== expected) found.problems.push(`${answer} instead of ${expected}`);
      const rest = Math.max(1, EVERY_MS - (now - begin));
      await sleep(rest);
      late.push(performance.now() - now - rest);
    }
  }

  const end = performance.now() + minutes * 60_000;
  const phaseMs = Math.max(PHASE_MS, (minutes * 60_000) / PHASES);
  for (let seed = 0; performance.now() < end; seed += clients) {
    const attack: Attack = { url, key: keys.hostile, clients, seed };
    const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(attack)]);
    await once(child, 'message');
    await ask(found.alone, [], []);
    child.send('begin');
    await ask(found.beside, found.atBegin, found.late);
    const counted = once(child, 'message');
    child.send('end');
    for (const [status, count] of (await counted)[0] as [string, number][]) {
      found.hostile.set(status, (found.hostile.get(status) ?? 0) + count);
    }
    await once(child, 'exit');
    await sleep(BETWEEN_MS);
  }
  return found;
}

/** Runs the process of the hostile callers, which says when its bodies are made and, at the end, what it got. */
async function attack({ url, key, clients, seed }: Attack): Promise<void> {
  const random = new Random(seed);
  const bodies = EXPENSIVE.map((make) =>
    Array.from({ length: make.length === 0 ? 1 : BODIES }, () => {
      const [path, body] = make(random);
      const bytes = Buffer.from(JSON.stringify({ model: STARTER, ...body }));
      return { path, bytes, varies: bytes.indexOf(FIRST_WORD) };
    }),
  );
  const answers = new Map<string, number>();
  process.send?.('ready');
  await once(process, 'message');
  const asking = Array.from({ length: clients }, async () => {
    for (;;) {
      const kind = bodies[Math.floor(random.uniform() * bodies.length)]!;
      const { path, bytes, varies } = kind[Math.floor(random.uniform() * kind.length)]!;
      const fresh = varies < 0 ? bytes : Buffer.from(bytes);
      if (varies >= 0) fresh.write(words(random, 1).padEnd(FIRST_WORD.length), varies);
      const status = await post(`${url}${path}`, key, fresh).then(
        async (response) => {
          const text = await response.text();
          return response.status < 500 ? String(response.status) : `${response.status} ${text.slice(0, 500)}`;
        },
        () => 'broken off',
      );
      answers.set(status, (answers.get(status) ?? 0) + 1);
    }
  });
  await Promise.race([once(process, 'message'), ...asking]);
  process.send?.([...answers], () => process.exit());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await attack(JSON.parse(process.argv[2]!) as Attack);

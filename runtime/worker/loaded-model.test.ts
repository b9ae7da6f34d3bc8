import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import type { Priority } from '../../lib/backend.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { Engine } from '../engine/engine.ts';
import type { JobSpec } from '../engine/job-spec.ts';
import type { Work } from '../protocol/messages.ts';
import type { TextModel } from '../text/text-model.ts';
import { LoadedModel } from './loaded-model.ts';
import type { LoadedContract } from './task-job.ts';

let now = 1000;
vi.spyOn(performance, 'now').mockImplementation(() => now);
afterEach(() => {
  now += 1_000;
});

/** A contract that asks nothing of the engine but one row for a question. */
const CONTRACT = {
  contract: { info: { name: 'toy' }, limits: { options: 2, levels: 2 }, maxTokens: 100, confidence: {} },
  text: {
    inParts: () =>
      function* (work: () => unknown) {
        yield;
        return work();
      },
  },
  open: {
    about: () => ({
      *ask() {
        yield [{ ids: [1, 2], shared: 1, read: { labels: [0, 1] } }];
        return [Math.log(0.25), Math.log(0.75)];
      },
    }),
  },
  narrow: true,
} as unknown as LoadedContract;
const WORK = {
  kind: 'tasks',
  batch: {
    input: { context: 'a' },
    media: [],
    tasks: [{ type: 'decide', name: 'q', question: 'b', options: ['no', 'yes'] }],
    maxOutputTokens: 1,
    temperature: 0,
  },
} as unknown as Extract<Work, { kind: 'tasks' }>;
/** Request that a decision model refuses. */
const EXTRACTION = {
  kind: 'tasks',
  batch: {
    ...WORK.batch,
    tasks: [{ type: 'extract', name: 'e', instruction: 'b', shape: { kind: 'keys', keys: ['k'] } }],
  },
} as unknown as Work;

/** An engine that ends one job in a step, interactive ones first, and lists their priorities in `ended`. */
function toyEngine() {
  const jobs: { priority: Priority; caller: string; end(): void }[] = [];
  const ended: Priority[] = [];
  const engine = {
    restore: async () => {},
    submit: ({ priority = 'interactive', caller = '' }: JobSpec) =>
      new Promise((resolve) => {
        const result = { branches: [{ rows: [new Float32Array(2)], chosen: 0 }], promptTokens: 2, cachedTokens: 0 };
        jobs.push({ priority, caller, end: () => resolve({ ...result, queueMs: 0, promptMs: 0, generationMs: 0 }) });
      }),
    async step() {
      jobs.sort((a, b) => b.priority.localeCompare(a.priority));
      const job = jobs.shift();
      if (job) ended.push(job.priority);
      job?.end();
      return job !== undefined;
    },
    serves: (caller: string) => jobs.some((job) => job.caller === caller),
    get onlyBatch() {
      return jobs.every(({ priority }) => priority === 'batch');
    },
  };
  return { engine: engine as unknown as Engine, ended };
}

function modelOf(engine: Engine) {
  const info = {
    model: parseModelId('a/b'),
    device: 'CPU',
    maxPromptLen: 100,
    contextLength: 100,
    dependence: null,
  } as const;
  const model = new LoadedModel({ ...info, text: {} as TextModel, engine, loaded: CONTRACT });
  return (priority: Priority, caller = 'a', work: Work = WORK) => {
    const { run } = atOnce(model.prepare(work, { priority, caller }));
    return () => run({ reply: () => {}, signal: new AbortController().signal, priority }, 60_000, []);
  };
}

test('batch jobs wait for an interactive request whose text was read, and for the next after its answer', async () => {
  const { engine, ended } = toyEngine();
  const prepare = modelOf(engine);
  const first = prepare('interactive');
  const batch = prepare('batch')();
  await setTimeout(5);
  expect(ended).toEqual([]);
  await first();
  const second = prepare('interactive');
  await setTimeout(5);
  await second();
  expect(ended).toEqual(['interactive', 'interactive']);
  now += 10;
  await batch;
  expect(ended).toEqual(['interactive', 'interactive', 'batch']);
});

test('batch jobs wait for no other batch job, and for requests that come all the time not for long', async () => {
  const { engine, ended } = toyEngine();
  const prepare = modelOf(engine);
  await prepare('batch')();
  expect(ended).toEqual(['batch']);
  prepare('interactive');
  const batch = prepare('batch')();
  await setTimeout(5);
  expect(ended).toEqual(['batch']);
  now += 24;
  prepare('interactive');
  now += 1;
  await batch;
  expect(ended).toEqual(['batch', 'batch']);
});

test('jobs of other callers wait for the request of a caller that has none, and not for one that has', async () => {
  const { engine, ended } = toyEngine();
  const prepare = modelOf(engine);
  const [own, other] = [prepare('interactive'), prepare('interactive', 'b')];
  const first = own();
  await setTimeout(5);
  expect(ended).toEqual([]);
  await Promise.all([first, other()]);
  now += 10;
  const next = prepare('interactive');
  prepare('interactive');
  await next();
  expect(ended).toEqual(['interactive', 'interactive', 'interactive']);
});

test('jobs of other callers do not wait for a caller within a second of its refused request', async () => {
  const { engine, ended } = toyEngine();
  const prepare = modelOf(engine);
  expect(() => prepare('interactive', 'b', EXTRACTION)).toThrow('extract nothing');
  prepare('interactive', 'b');
  await prepare('interactive')();
  expect(ended).toHaveLength(1);
  now += 10;
  await setTimeout(5);
  now += 990;
  prepare('interactive', 'b');
  const waits = prepare('interactive')();
  await setTimeout(5);
  expect(ended).toHaveLength(1);
  now += 25;
  await waits;
});

import { parseArgs } from 'node:util';
import type { Engine } from '../../runtime/engine/engine.ts';
import type { Job } from '../../runtime/engine/job.ts';
import type { Model } from '../../runtime/engine/model.ts';
import { chat, engineOf, openForBenchmark, workload } from '../branches/workload.ts';
import { compiledRandomModel } from '../models/cache.ts';
import type { ShapeName } from '../models/shapes.ts';
import { median, type Report } from '../report.ts';
import { type Cost, measure } from '../systems/measure.ts';

const CHAT = { prompt: 128, answer: 64 };
const LONG_PROMPT = 4096;

/**
 * Measures unrelated requests at once, by the same model compiled with one slot (a request a run) and with several
 * (continuous batching), in turn. Also what the slots cost a single request, and how much a long prompt delays chats.
 * Arguments: `--form=int8|int4 --shape=qwen2.5-0.5b --slots=8 --chats=1,2,4,8,16 --rounds=3`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      form: { type: 'string', default: 'int8' },
      shape: { type: 'string', default: 'qwen2.5-0.5b' },
      slots: { type: 'string', default: '8' },
      chats: { type: 'string', default: '1,2,4,8,16' },
      rounds: { type: 'string', default: '3' },
    },
  });
  const form = values.form === 'int4' ? 'int4' : 'int8';
  const shape = values.shape as ShapeName;
  const rounds = Number(values.rounds);
  const systems = await Promise.all(
    [1, Number(values.slots)].map(async (slots) => ({
      system: `assay ${form}, ${slots === 1 ? 'one slot' : `${slots} slots`}`,
      model: await openForBenchmark(await compiledRandomModel(shape, form, slots)),
    })),
  );
  const cases = [
    ...values.chats.split(',').map(Number).map(chatsTogether),
    { name: 'W with 1 task', jobs: (seed: number) => [workload(1, seed)] },
    { name: 'W with 16 tasks', jobs: (seed: number) => [workload(16, seed)] },
  ];
  for (const { name, jobs } of cases) {
    const costs = systems.map(() => [] as Cost[]);
    for (let round = 0; round <= rounds; round++) {
      for (const [at, { model }] of systems.entries()) {
        const cost = await together(engineOf(model), jobs(round));
        if (round > 0) costs[at]?.push(cost); // the first warms up
      }
    }
    for (const [at, { system }] of systems.entries()) {
      for (const [metric, of] of METRICS) {
        report({ system, case: name, metric, value: median((costs[at] ?? []).map(of)), unit: 'ms' });
      }
    }
    const ratios = (costs[1] ?? []).map(({ cpuMs }, round) => (costs[0]?.[round]?.cpuMs ?? 0) / cpuMs);
    const [, batched] = systems;
    if (batched)
      report({
        system: batched.system,
        case: name,
        metric: 'speed (processor)',
        value: median(ratios),
        unit: 'of one slot',
      });
  }
  for (const { system, model } of systems) await reportGaps(report, system, model);
  for (const { model } of systems) await model.close();
}

const METRICS = [
  ['time', ({ ms }: Cost) => ms],
  ['processor time', ({ cpuMs }: Cost) => cpuMs],
] as const;

function chatsTogether(count: number): { name: string; jobs(seed: number): Job[] } {
  const jobs = (seed: number) =>
    Array.from({ length: count }, (_, i) => chat(CHAT.prompt, CHAT.answer, seed * 1000 + i));
  return { name: `${count} chats at once`, jobs };
}

async function together(engine: Engine, jobs: readonly Job[]): Promise<Cost> {
  return measure(async () => {
    const all = jobs.map((job) => engine.submit(job));
    while (await engine.step());
    return Promise.all(all);
  });
}

/** Reports the time between two tokens of a chat, with seven chats alone and while a prompt of 4,096 tokens is read. */
async function reportGaps(report: Report, system: string, model: Model): Promise<void> {
  for (const beside of [false, true]) {
    const engine = engineOf(model);
    const gaps: number[] = [];
    const chats = Array.from({ length: 7 }, (_, i) => timed(chat(CHAT.prompt, 200, 7000 + i), gaps));
    const all = chats.map((job) => engine.submit(job));
    // Until all of them decode.
    while (gaps.length < 7 * 4) await engine.step();
    gaps.length = 0;
    const long = beside ? engine.submit(chat(LONG_PROMPT, 1, 7777)) : null;
    let read = false;
    void long?.then(() => {
      read = true;
    });
    for (let steps = 0; !read && (beside || steps < 60) && (await engine.step()); steps++);
    gaps.sort((a, b) => a - b);
    const at = (share: number) => gaps[Math.min(gaps.length - 1, Math.floor(share * gaps.length))] ?? 0;
    const name = beside ? `7 chats beside a prompt of ${LONG_PROMPT}` : '7 chats';
    report({ system, case: name, metric: 'gap between tokens, p50', value: at(0.5), unit: 'ms' });
    report({ system, case: name, metric: 'gap between tokens, p99', value: at(0.99), unit: 'ms' });
    while (await engine.step());
    await Promise.all(all);
  }
}

function timed(job: Job, gaps: number[]): Job {
  let last: number | null = null;
  return {
    ...job,
    onToken() {
      const now = performance.now();
      if (last !== null) gaps.push(now - last);
      last = now;
      return undefined;
    },
  };
}

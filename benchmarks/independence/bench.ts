import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { REQUESTED_PRECISIONS } from '../../runtime/compile/choose-precision.ts';
import { isCheckpoint } from '../../runtime/compile/source.ts';
import { Random } from '../../runtime/engine/random.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { openForBenchmark } from '../branches/workload.ts';
import { readTestSet, TEST_SETS } from '../quality/test-set.ts';
import type { Report } from '../report.ts';
import { writeAsGguf } from './published-blocks.ts';
import { type Request, Requests } from './requests.ts';

const HELP = `npm run bench -- independence [--model=models/starter] [--precision=int8,int4,published,keep] [--requests=42] [--seed=1] [--side-by-side] [--quick]

Each task of a request alone and in company, in eight ways: how many answers differ. A request asks 64 tasks of both test sets about one of their texts.
--seed draws other requests. --precision=published: the blocks of a GGUF file, which is written from the model. --side-by-side computes the tasks of a request side by side, as for models that cannot compute them apart.`;

const TASKS = 64;
/** Number of tasks of a request among others. */
const MOST_TASKS = 256;
/** Number of requests that run in the same batches. */
const GROUP = 3;
const CHATS = 7;

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string', default: join(import.meta.dirname, '../../models/starter') },
      precision: { type: 'string', default: 'int8,int4,published' },
      requests: { type: 'string' },
      seed: { type: 'string', default: '1' },
      'side-by-side': { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const count = Number(values.requests ?? (values.quick ? 1 : 42));
  const text = await loadTextModel(values.model);
  for (const name of values.precision.split(',')) {
    const precision = REQUESTED_PRECISIONS.find((one) => one === name);
    if (!precision || precision === 'auto') throw new Error(`There is no precision ${name} to compare.\n${HELP}`);
    const folder = mkdtempSync(join(tmpdir(), 'assay-independence-'));
    const target = join(folder, 'compiled');
    const gguf = precision === 'published' && !isCheckpoint(values.model);
    if (gguf) writeAsGguf(values.model, folder);
    const source = gguf ? folder : values.model;
    await compileModel({ source, target, device: 'CPU', precision, maxPromptLen: 2048 });
    const model = await openForBenchmark(target);
    const differ = await compareAll(new Requests(text, model, !values['side-by-side']), {
      count,
      seed: Number(values.seed),
    });
    for (const [way, kinds] of differ) {
      for (const [kind, { compared, different }] of kinds) {
        const own = values['side-by-side'] ? ', side by side' : '';
        const system = `${basename(values.model)}, ${precision === 'keep' ? 'as published' : precision}${own}`;
        report({ system, case: way, metric: `${kind} that differ`, value: different, unit: `of ${compared}` });
      }
    }
    await model.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Numbers of answers of each kind that were compared and that differ, for each way to answer. */
type Differences = Map<string, Map<string, { compared: number; different: number }>>;

/**
 * Answers random requests in many ways. Compares the answers with those of each task alone, on an engine with an empty
 * cache.
 */
async function compareAll(requests: Requests, { count, seed }: { count: number; seed: number }): Promise<Differences> {
  const texts = (await Promise.all(TEST_SETS.map(readTestSet))).flat();
  const tasks = texts.flatMap((one) => one.tasks);
  const random = new Random(seed);
  const pick = <T>(from: readonly T[]): T => at(from, Math.floor(random.uniform() * from.length));
  const some = (length: number) => Array.from({ length }, () => pick(tasks));
  const differences: Differences = new Map();
  for (let n = 0; n < count; n += GROUP) {
    const contexts = new Set<string>();
    while (contexts.size < GROUP + CHATS) contexts.add(pick(texts).context);
    const [own, others] = [[...contexts].slice(0, GROUP), [...contexts].slice(GROUP)];
    const group = own.map((context): Request => ({ context, tasks: some(TASKS) }));
    const beside = await requests.beside(group);
    for (const [i, request] of group.slice(0, count - n).entries()) {
      const alone = await requests.eachAlone(request);
      const cached = await requests.fromCache(request, { context: at(others, 0), tasks: some(1) });
      const among = await requests.among(some(MOST_TASKS - TASKS), request);
      for (const [way, answers] of [
        ['together', cached.together],
        ['in another order', await requests.reversed(request)],
        [`with ${MOST_TASKS - 1} others on the text`, among],
        ['alone, on a cached text', cached.eachAgain],
        ['together, on a cached text', cached.again],
        ['after an eviction', cached.afterEviction],
        ['beside other requests', at(beside, i)],
        [`beside ${CHATS} chats`, await requests.besideChats(request, others)],
      ] as const) {
        const kinds = differences.get(way) ?? new Map();
        differences.set(way, kinds);
        for (const [task, { type }] of request.tasks.entries()) {
          const kind = type === 'decide' ? 'decisions' : 'extractions';
          const { compared, different } = kinds.get(kind) ?? { compared: 0, different: 0 };
          const differs = answers[task] !== alone[task];
          kinds.set(kind, { compared: compared + 1, different: different + Number(differs) });
        }
      }
    }
  }
  return differences;
}

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
import { type Case, readTestSet, TEST_SETS } from '../quality/test-set.ts';
import type { Report } from '../report.ts';
import { writeAsGguf } from './published-blocks.ts';
import { askerOfTasks } from './requests.ts';
import { CHATS, type Request, Ways } from './ways.ts';

const HELP = `npm run bench -- independence [--model=models/starter] [--precision=int8,int4,published,keep] [--requests=42] [--seed=1] [--side-by-side] [--quick]

Each task of a request alone and in company, in eleven ways: how many answers differ. A request asks 64 tasks of both test sets about one of their texts.
--seed draws other requests. --precision=published: the blocks of a GGUF file, which is written from the model. --side-by-side computes the tasks of a request side by side, as for models that cannot compute them apart.`;

const TASKS = 64;
/** Number of other requests that run in the same batches. */
const BESIDE = 2;

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
    const ways = new Ways(model, askerOfTasks(text, model, !values['side-by-side']));
    const differ = await compareAll(ways, { count, seed: Number(values.seed) });
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
async function compareAll(
  ways: Ways<string, Case>,
  { count, seed }: { count: number; seed: number },
): Promise<Differences> {
  const texts = (await Promise.all(TEST_SETS.map(readTestSet))).flat();
  const tasks = texts.flatMap((one) => one.tasks);
  const random = new Random(seed);
  const pick = <T>(from: readonly T[]): T => at(from, Math.floor(random.uniform() * from.length));
  const some = (length: number) => Array.from({ length }, () => pick(tasks));
  const differences: Differences = new Map();
  for (let n = 0; n < count; n++) {
    const contexts = new Set<string>();
    while (contexts.size < 1 + BESIDE + CHATS) contexts.add(pick(texts).context);
    const requests = [...contexts].map((text): Request<string, Case> => ({ text, tasks: some(TASKS) }));
    const [own, ...others] = requests;
    if (!own) throw new Error('no test set has texts');
    const company = { beside: others.slice(0, BESIDE), texts: [...contexts].slice(1 + BESIDE), others: some };
    for await (const { way, tasks, alone, answers } of ways.compare(own, company)) {
      const kinds = differences.get(way) ?? new Map();
      differences.set(way, kinds);
      for (const [task, { type }] of tasks.entries()) {
        const kind = type === 'decide' ? 'decisions' : 'extractions';
        const { compared, different } = kinds.get(kind) ?? { compared: 0, different: 0 };
        const differs = answers[task] !== alone[task];
        kinds.set(kind, { compared: compared + 1, different: different + Number(differs) });
      }
    }
  }
  return differences;
}

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

const HELP = `npm run bench -- independence [--model=models/starter] [--precision=int8,int4,published,keep] [--requests=150] [--seed=1] [--side-by-side] [--quick]

Each task of a request alone and in company: how many answers differ. A request asks 16 tasks of both test sets about one of their texts.
--seed draws other requests. --precision=published: the blocks of a GGUF file, which is written from the model. --side-by-side computes the tasks of a request side by side, as for models that cannot compute them apart.`;

const TASKS = 16;
/** Number of other requests that run together with the compared one. */
const BESIDE = 2;

/** Ways to answer a request. Each is compared with answering every task alone, on an engine with an empty cache. */
const WAYS = ['alone, on a cached text', 'together', 'in another order', 'together, on a cached text', 'beside others'];

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string', default: join(import.meta.dirname, '../../models/starter') },
      precision: { type: 'string', default: 'int8,keep' },
      requests: { type: 'string' },
      seed: { type: 'string', default: '1' },
      'side-by-side': { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const count = Number(values.requests ?? (values.quick ? 2 : 150));
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

type Differences = Map<string, Map<string, { compared: number; different: number }>>;

/** Answers random requests in all ways. Counts the answers that differ from those of the tasks alone. */
async function compareAll(requests: Requests, { count, seed }: { count: number; seed: number }): Promise<Differences> {
  const texts = (await Promise.all(TEST_SETS.map(readTestSet))).flat();
  const tasks = texts.flatMap((one) => one.tasks);
  const random = new Random(seed);
  const pick = <T>(from: readonly T[]): T => at(from, Math.floor(random.uniform() * from.length));
  const draw = (): Request => ({
    context: pick(texts).context,
    tasks: Array.from({ length: TASKS }, () => pick(tasks)),
  });
  const differences: Differences = new Map(WAYS.map((way) => [way, new Map()]));
  for (let n = 0; n < count; n++) {
    const request = draw();
    const alone = await requests.eachAlone(request, { cached: false });
    const others = Array.from({ length: BESIDE }, draw);
    const ways = [
      await requests.eachAlone(request, { cached: true }),
      await requests.together(request, { cached: false }),
      await requests.reversed(request),
      await requests.together(request, { cached: true }),
      await requests.beside(request, others),
    ];
    for (const [w, answers] of ways.entries()) {
      const kinds = differences.get(at(WAYS, w));
      for (const [i, { type }] of request.tasks.entries()) {
        const kind = type === 'decide' ? 'decisions' : 'extractions';
        const counted = kinds?.get(kind) ?? { compared: 0, different: 0 };
        counted.compared++;
        if (answers[i] !== alone[i]) counted.different++;
        kinds?.set(kind, counted);
      }
    }
  }
  return differences;
}

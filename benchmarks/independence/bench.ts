import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { REQUESTED_PRECISIONS } from '../../runtime/compile/choose-precision.ts';
import { isCheckpoint } from '../../runtime/compile/source.ts';
import { Random } from '../../runtime/engine/random.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { writeFamily } from '../../tests/oracle/family-fixture.ts';
import { openForBenchmark } from '../branches/workload.ts';
import { withTokenizer } from '../models/random-tokenizer.ts';
import { type Case, readTestSet, TEST_SETS } from '../quality/test-set.ts';
import type { Report } from '../report.ts';
import { writeAsGguf } from './published-blocks.ts';
import { askerOfTasks, saidIn } from './requests.ts';
import { CHATS, type Request, TASKS_AMONG, Ways } from './ways.ts';

const HELP = `npm run bench -- independence [--model=models/starter] [--precision=int8,int4,published,float,keep] [--requests=42] [--seed=1] [--side-by-side] [--quick]

Each task of a request alone and in company, in twelve ways: how many answers differ, and how many in a bit of their probabilities. A request asks 64 tasks of both test sets about one of their texts.
--model: a folder, or a tiny random model of a family of the tests, such as lfm2 and qwen3.5-text, whose layers have a state, or gemma3:256, with a head of 256 elements. Its answers are cut after 16 tokens, because it does not end them.
--seed draws other requests. --precision=published: the blocks of a GGUF file, which is written from the model. --side-by-side computes the tasks of a request side by side, as for models that cannot compute them apart.`;

const TASKS = 64;
/** Number of tokens after which the answers of a random model are cut. */
const CUT = 16;
/** Positions of a random model, and its tokens: one for each byte. */
const RANDOM = { context: 8192, vocabulary: 256 };
/** Number of other requests that run in the same batches. */
const BESIDE = 2;

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string', default: join(import.meta.dirname, '../../models/starter') },
      precision: { type: 'string' },
      requests: { type: 'string' },
      seed: { type: 'string', default: '1' },
      'side-by-side': { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const count = Number(values.requests ?? (values.quick ? 1 : 42));
  const random = !existsSync(values.model);
  const { precision: precisions = random ? 'int8,int4,float' : 'int8,int4,published' } = values;
  for (const name of precisions.split(',')) {
    const precision = REQUESTED_PRECISIONS.find((one) => one === name);
    if (!precision || precision === 'auto') throw new Error(`There is no precision ${name} to compare.\n${HELP}`);
    const folder = mkdtempSync(join(tmpdir(), 'assay-independence-'));
    const target = join(folder, 'compiled');
    const gguf = precision === 'published' && !random && !isCheckpoint(values.model);
    if (gguf) writeAsGguf(values.model, folder);
    if (random) writeFamily(folder, values.model, RANDOM.context);
    const source = gguf || random ? folder : values.model;
    await compileModel({ source, target, device: 'CPU', precision, maxPromptLen: 2048 });
    const model = await openForBenchmark(target);
    const text = await loadTextModel(random ? withTokenizer(target, RANDOM.vocabulary) : values.model);
    const longest = random ? CUT : Number.POSITIVE_INFINITY;
    const ways = new Ways(model, askerOfTasks(text, model, { apart: !values['side-by-side'], longest }));
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
    const company = {
      most: TASKS_AMONG,
      beside: others.slice(0, BESIDE),
      texts: [...contexts].slice(1 + BESIDE),
      others: some,
    };
    for await (const { way, tasks, alone, answers } of ways.compare(own, company)) {
      const kinds = differences.get(way) ?? new Map();
      differences.set(way, kinds);
      const count = (kind: string, differs: boolean) => {
        const { compared, different } = kinds.get(kind) ?? { compared: 0, different: 0 };
        kinds.set(kind, { compared: compared + 1, different: different + Number(differs) });
      };
      for (const [index, { type }] of tasks.entries()) {
        const [own, wanted] = [at(answers, index), at(alone, index)];
        count(type === 'decide' ? 'decisions' : 'extractions', saidIn(own) !== saidIn(wanted));
        count('probabilities', own !== wanted);
      }
    }
  }
  return differences;
}

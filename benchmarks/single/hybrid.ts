import { parseArgs } from 'node:util';
import { answer, best, engineOf, openForBenchmark, workload } from '../branches/workload.ts';
import { compiledRandomModel } from '../models/cache.ts';
import type { ShapeName } from '../models/shapes.ts';
import type { Report } from '../report.ts';
import type { Cost } from '../systems/measure.ts';

const HELP = `npm run bench -- hybrid [--shapes=lfm2-350m,qwen3.5-0.8b] [--tasks=1,16] [--runs=3] [--form=int8|int4] [--quick]

Workload W on models whose layers mix attention with convolutions (LFM2) or linear attention (Qwen3.5), with random weights: the cost of
several tasks, as a multiple of the first number of tasks. --quick: tiny shapes, to see that it runs.`;

const SHAPES: readonly ShapeName[] = ['lfm2-350m', 'qwen3.5-0.8b'];
const TINY: readonly ShapeName[] = ['tiny-conv', 'tiny-linear'];

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      shapes: { type: 'string' },
      tasks: { type: 'string', default: '1,16' },
      runs: { type: 'string' },
      form: { type: 'string', default: 'int8' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const known = values.quick ? TINY : SHAPES;
  const shapes = known.filter((shape) => !values.shapes || values.shapes.split(',').includes(shape));
  if (shapes.length === 0) throw new Error(`Nothing to measure.\n${HELP}`);
  const counts = values.tasks.split(',').map(Number);
  const form = values.form === 'int4' ? 'int4' : 'int8';
  const runs = Number(values.runs ?? (values.quick ? 1 : 3));
  for (const shape of shapes) await measureShape({ shape, form, counts, runs }, report);
}

interface Measurement {
  shape: ShapeName;
  form: 'int8' | 'int4';
  counts: readonly number[];
  runs: number;
}

async function measureShape({ shape, form, counts, runs }: Measurement, report: Report): Promise<void> {
  const model = await openForBenchmark(await compiledRandomModel(shape, form));
  const system = `${shape}, ${form === 'int8' ? 8 : 4} bits`;
  let seed = 1;
  let first: Cost | undefined;
  await answer(engineOf(model), workload(2, seed++)); // warm up
  for (const count of counts) {
    const what = count === 1 ? '1 task' : `${count} tasks`;
    const cost = await best(runs, () => answer(engineOf(model), workload(count, seed++)));
    const say = (metric: string, value: number, unit: string) => report({ system, case: what, metric, value, unit });
    say('time', cost.ms, 'ms');
    say('processor time', cost.cpuMs, 'ms');
    if (first) say('of one', cost.ms / first.ms, 'x');
    if (first) say(OF_ONE, cost.cpuMs / first.cpuMs, 'x');
    first ??= cost;
  }
  await model.close();
}

/** Metric that the goal uses. It is based on processor time, because wall time varies too much on a busy machine. */
export const OF_ONE = 'of one (processor time)';

import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { answer, engineOf, openForBenchmark, workload } from '../branches/workload.ts';
import { compiledBlockModel, compiledStarter } from '../models/cache.ts';
import type { Report } from '../report.ts';

/**
 * Measures the cost of fixed shapes. Workload W runs on the packed path and on the static path, which has fixed shapes,
 * in turn, both on the CPU with the same weights. Arguments: `--model=qwen2.5-0.5b|starter --tasks=1,16 --runs=3`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string', default: 'qwen2.5-0.5b' },
      tasks: { type: 'string', default: '1,16' },
      runs: { type: 'string', default: '3' },
    },
  });
  const compiled = values.model === 'starter' ? compiledStarter : compiledBlockModel;
  const packed = await openForBenchmark(await compiled('packed'));
  const fixed = await openForBenchmark(await compiled('static'));
  /** Maps a token of W to this model's vocabulary, which may be smaller. */
  const within = (token: number): number => token % packed.manifest.vocabSize;
  const once = async (model: typeof packed, tasks: number, seed: number) => {
    const { prefix, branches, ...job } = workload(tasks, seed);
    const own = branches.map((branch) => ({ ...branch, suffix: branch.suffix.map(within) }));
    return answer(engineOf(model), { ...job, prefix: prefix.map(within), branches: own });
  };
  await once(packed, 2, 1);
  await once(fixed, 2, 1);
  for (const tasks of values.tasks.split(',').map(Number)) {
    const ratios: { time: number; processor: number }[] = [];
    for (let seed = 2; seed < 2 + Number(values.runs); seed++) {
      const [of, by] = [await once(fixed, tasks, seed), await once(packed, tasks, seed)];
      ratios.push({ time: of.ms / by.ms, processor: of.cpuMs / by.cpuMs });
      report({ system: 'packed', case: `${tasks} tasks`, metric: 'time', value: by.ms, unit: 'ms' });
      report({ system: 'fixed shapes', case: `${tasks} tasks`, metric: 'time', value: of.ms, unit: 'ms' });
    }
    const median = (of: number[]): number =>
      at(
        of.sort((a, b) => a - b),
        Math.floor(of.length / 2),
      );
    const ratio = { system: 'fixed shapes', case: `${tasks} tasks`, unit: '' };
    report({ ...ratio, metric: 'of packed', value: median(ratios.map(({ time }) => time)) });
    report({ ...ratio, metric: 'of packed (proc.)', value: median(ratios.map(({ processor }) => processor)) });
  }
  await packed.close();
  await fixed.close();
}

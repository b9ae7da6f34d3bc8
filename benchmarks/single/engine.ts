import { parseArgs } from 'node:util';
import { answer, best, engineOf, openForBenchmark, optionsWorkload, workload } from '../branches/workload.ts';
import { compiledRandomModel } from '../models/cache.ts';
import type { Report } from '../report.ts';
import type { Cost } from '../systems/measure.ts';

/**
 * Measures workload W on a random model in the shape of Qwen2.5-0.5B, once with generated answers and once with choices
 * between options. Arguments: `--form=int8|int4 --group=16 --tokens=256 --tasks=1,4,16,64 --runs=3`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      form: { type: 'string', default: 'int8' },
      group: { type: 'string', default: '16' },
      tokens: { type: 'string', default: '256' },
      tasks: { type: 'string', default: '1,4,16,64' },
      runs: { type: 'string', default: '3' },
    },
  });
  const form = values.form === 'int4' ? 'int4' : 'int8';
  const runs = Number(values.runs);
  const limits = { group: Number(values.group), tokens: Number(values.tokens) };
  const model = await openForBenchmark(await compiledRandomModel('qwen2.5-0.5b', form));
  let seed = 1;
  let one: Cost | undefined;

  const tell = (what: string, cost: Cost): void => {
    const system = `assay ${form}`;
    one ??= cost;
    report({ system, case: what, metric: 'time', value: cost.ms, unit: 'ms' });
    report({ system, case: what, metric: 'processor time', value: cost.cpuMs, unit: 'ms' });
    report({ system, case: what, metric: 'of the first', value: cost.ms / one.ms, unit: '' });
    report({ system, case: what, metric: 'of the first (proc.)', value: cost.cpuMs / one.cpuMs, unit: '' });
  };

  await answer(engineOf(model), workload(2, seed++)); // warm up
  for (const tasks of values.tasks.split(',').map(Number)) {
    tell(`${tasks} tasks`, await best(runs, () => answer(engineOf(model, limits), workload(tasks, seed++))));
    const options = await best(runs, () => answer(engineOf(model, limits), optionsWorkload(tasks, seed++)));
    tell(`${tasks} tasks, options`, options);
  }
  const cached = await best(runs, async () => {
    const engine = engineOf(model, limits);
    const first = workload(1, seed++);
    await answer(engine, first);
    const second = await answer(engine, { ...first, branches: workload(1, seed++).branches });
    if (second.result.cachedTokens !== first.prefix.length) throw new Error('the context was not cached');
    return second;
  });
  tell('1 task, cached context', cached);
  await model.close();
}

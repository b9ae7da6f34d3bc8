// Workload W on a model of the Qwen2.5-0.5B shape.
// node benchmarks/branches/branches.ts [--form=int8|int4] [--group=16] [--tokens=256] [--tasks=1,4,16,64] [--runs=3]
import { parseArgs } from 'node:util';
import { compiledRandomModel } from '../models/random-model.ts';
import { answer, best, type Cost, engineOf, openForBenchmark, optionsWorkload, workload } from './workload.ts';

const { values } = parseArgs({
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

await answer(engineOf(model), workload(2, seed++)); // warm up
let one: Cost | undefined;
for (const tasks of values.tasks.split(',').map(Number)) {
  const cold = await best(runs, () => answer(engineOf(model, limits), workload(tasks, seed++)));
  const options = await best(runs, () => answer(engineOf(model, limits), optionsWorkload(tasks, seed++)));
  one ??= cold;
  report(`${tasks} tasks`, cold);
  report(`${tasks} tasks with options`, options);
}
const cached = await best(runs, async () => {
  const engine = engineOf(model, limits);
  const first = workload(1, seed++);
  await answer(engine, first);
  const second = await answer(engine, { ...first, branches: workload(1, seed++).branches });
  if (second.result.cachedTokens !== first.prefix.length) throw new Error('the context was not cached');
  return second;
});
report('1 task on a cached context', cached);
await model.close();

function report(name: string, { ms, cpuMs }: Cost): void {
  const ratio = `${(ms / one!.ms).toFixed(2)} (processor ${(cpuMs / one!.cpuMs).toFixed(2)})`;
  console.log(`${form} ${name}: ${ms.toFixed(0)} ms, processor ${cpuMs.toFixed(0)} ms, of the first ${ratio}`);
}

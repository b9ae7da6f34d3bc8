import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { answer, engineOf, openForBenchmark, workload } from '../branches/workload.ts';
import { compiledRandomModel } from '../models/cache.ts';
import type { Report } from '../report.ts';

/**
 * Measures the peak memory of workload W with 16 tasks, and the size of the weights and of the KV. Runs only on Linux.
 * Argument: `--form=int8|int4|float`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: { form: { type: 'string', default: 'int8' } } });
  const form = (['int4', 'float'] as const).find((one) => one === values.form) ?? 'int8';
  const folder = await compiledRandomModel('qwen2.5-0.5b', form);
  const weights = statSync(join(folder, 'weights.bin')).size;
  const before = peakBytes();
  const model = await openForBenchmark(folder);
  const loaded = peakBytes();
  const engine = engineOf(model);
  await answer(engine, workload(16, 1));
  const peak = peakBytes();
  const wanted = weights + engine.kvBytes;
  const figures: [string, number, string][] = [
    ['weights', weights / 2 ** 20, 'MB'],
    ['KV', engine.kvBytes / 2 ** 20, 'MB'],
    ['Node alone', before / 2 ** 20, 'MB'],
    ['peak of loading', loaded / 2 ** 20, 'MB'],
    ['loading without Node, of weights + KV', (loaded - before + engine.kvBytes) / wanted, ''],
    ['peak', peak / 2 ** 20, 'MB'],
    ['peak of weights + KV', peak / wanted, ''],
    ['the same without Node', (peak - before) / wanted, ''],
  ];
  for (const [metric, value, unit] of figures)
    report({ system: `assay ${form}`, case: '16 tasks', metric, value, unit });
  await model.close();
}

function peakBytes(): number {
  const kilobytes = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

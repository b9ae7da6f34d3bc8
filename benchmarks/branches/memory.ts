// Peak memory of W with 16 tasks, beside the bytes of the weights and of the KV. Linux only.
// node benchmarks/branches/memory.ts [--form=int8|int4]
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compiledRandomModel } from '../models/random-model.ts';
import { answer, engineOf, openForBenchmark, workload } from './workload.ts';

const { values } = parseArgs({ options: { form: { type: 'string', default: 'int8' } } });
const folder = await compiledRandomModel('qwen2.5-0.5b', values.form === 'int4' ? 'int4' : 'int8');
const weights = statSync(join(folder, 'weights.bin')).size;
const before = status('VmHWM');
const model = await openForBenchmark(folder);
const loaded = status('VmHWM');
const engine = engineOf(model);
await answer(engine, workload(16, 1));
const peak = status('VmHWM');
const wanted = weights + engine.kvBytes;
const mb = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`;
console.log(
  `${values.form}: weights ${mb(weights)}, KV ${mb(engine.kvBytes)}; peak ${mb(peak)} (before loading ${mb(before)}, loaded ${mb(loaded)}, ` +
    `now ${mb(status('VmRSS'))} of which files ${mb(status('RssFile'))}): ${(peak / wanted).toFixed(2)} of weights and KV`,
);
await model.close();

function status(name: 'VmHWM' | 'VmRSS' | 'RssFile'): number {
  const kilobytes = new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

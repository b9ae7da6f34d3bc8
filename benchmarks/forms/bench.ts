import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { W } from '../branches/tokens.ts';
import { median, type Report } from '../report.ts';
import { type RunningSystem, startSystem, THREADS } from '../systems/start.ts';
import { availableKernels } from './hidden-kernels.ts';

const HELP = `npm run bench -- forms [--rounds=3] [--quick]

8-bit and 4-bit weights on each family of kernels that this machine can run: processor time, in turns. On Linux x64, AVX-512 and VNNI are
also hidden from onnxruntime, for the kernels of CPUs without them.`;

const FORMS = ['int8', 'int4'] as const;
const TASKS = 16;
const WRITTEN = 24;

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
  const shape = values.quick ? 'tiny' : 'qwen2.5-0.5b';
  const cpu = cpus()[0]?.model.trim() ?? 'unknown CPU';
  for (const { family, hidden, env } of availableKernels()) {
    const where = `${family} (${cpu}${hidden ? `, ${hidden} hidden` : ''})`;
    const systems: RunningSystem[] = [];
    // Starts one system after the other, because the first start compiles the models.
    for (const weights of FORMS) {
      systems.push(await startSystem('assay', { shape, weights, threads: THREADS }, env));
    }
    try {
      for (const system of systems) await system.prefill({ tokens: 64, seed: 0 }); // warm up
      const taken = FORMS.map(() => new Map<string, number[]>());
      for (let round = 1; round <= rounds; round++) {
        for (const [i, system] of systems.entries()) {
          for (const [work, ms] of await measureOnce(system, round)) {
            at(taken, i).set(work, [...(at(taken, i).get(work) ?? []), ms]);
          }
        }
      }
      for (const [i, form] of FORMS.entries()) {
        for (const [work, ms] of at(taken, i)) {
          const say = (metric: string, value: number) =>
            report({ system: form, case: `${where}: ${work}`, metric, value: value / 1000, unit: 's' });
          say('median', median(ms));
          say('least', Math.min(...ms));
          say('most', Math.max(...ms));
        }
      }
    } finally {
      for (const system of systems) system.close();
    }
  }
}

/** Measures each workload once. Returns the processor time of each workload in milliseconds. */
async function measureOnce(system: RunningSystem, seed: number): Promise<[work: string, ms: number][]> {
  const { cold, cached } = await system.branches({ tasks: TASKS, seed });
  const { cpuMs } = await system.decode({ context: 128, tokens: WRITTEN, seed });
  return [
    [`W, ${TASKS} tasks on a new context of ${W.context} tokens`, cold.cpuMs],
    [`W, ${TASKS} tasks on a context that is kept`, cached.cpuMs],
    [`a chat that writes ${WRITTEN} tokens`, cpuMs],
  ];
}

import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { CONTENDERS } from '../branches/contenders.ts';
import { SHAPES } from '../models/shapes.ts';
import { installPeers } from '../peers/install.ts';
import { median, type Report } from '../report.ts';
import { startSystem, THREADS } from '../systems/start.ts';
import { peakMultiplyAdds, readBandwidth } from './limits.ts';
import { decodeBytes, prefillMultiplyAdds } from './needs.ts';

const HELP = `npm run bench -- speed [--lengths=128,1024,4096] [--rounds=3] [--systems=assay,llama] [--quick]

Tokens a second of one request, reading a prompt and writing an answer, each system in a process of its own, in turn.`;

/** Number of tokens generated in one measurement. */
const WRITTEN = 24;

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      lengths: { type: 'string' },
      rounds: { type: 'string' },
      systems: { type: 'string', default: '' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const lengths = (values.lengths ?? (values.quick ? '128' : '128,1024,4096')).split(',').map(Number);
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
  const shape = values.quick ? 'tiny' : 'qwen2.5-0.5b';
  const wanted = values.systems.split(',');
  // Omits the mode with copied sequences, which makes no difference for one request.
  const contenders = CONTENDERS.filter(({ mode }) => mode !== 'copies').filter(({ id }) =>
    wanted.some((begin) => id.startsWith(begin)),
  );
  if (contenders.some(({ program }) => program !== 'assay')) installPeers();

  const bandwidth = await readBandwidth(THREADS);
  const peak = await peakMultiplyAdds(THREADS);
  const limit = { system: 'the machine', case: 'limits' };
  report({ ...limit, metric: 'memory read', value: bandwidth / 1e9, unit: 'GB/s' });
  report({ ...limit, metric: '8-bit multiply-adds', value: peak / 1e9, unit: 'G/s' });

  const systems = await Promise.all(
    contenders.map(async ({ label, program, weights, mode }) => ({
      label: label.replace(', one sequence', ''),
      weights,
      system: await startSystem(program, { shape, weights, threads: THREADS, ...(mode ? { mode } : {}) }),
    })),
  );
  try {
    for (const { system } of systems) await system.prefill({ tokens: 64, seed: 0 }); // warm up
    for (const length of lengths) {
      const reading = systems.map(() => [] as number[]);
      const writing = systems.map(() => [] as number[]);
      for (let round = 0; round < rounds; round++) {
        for (const [i, { system }] of systems.entries()) {
          const seed = 1 + round + 100 * length;
          at(reading, i).push((1000 * length) / (await system.prefill({ tokens: length, seed })).ms);
          at(writing, i).push(
            (1000 * WRITTEN) / (await system.decode({ context: length, tokens: WRITTEN, seed: seed + 50 })).ms,
          );
        }
      }
      for (const [i, { label, weights }] of systems.entries()) {
        const best = (1000 * length) / ((1000 * prefillMultiplyAdds(SHAPES[shape], length)) / peak);
        reportRates(label, `reading ${length} tokens`, at(reading, i), best);
        reportRates(
          label,
          `writing behind ${length}`,
          at(writing, i),
          bandwidth / decodeBytes(SHAPES[shape], length, weights),
        );
      }
    }
  } finally {
    for (const { system } of systems) system.close();
  }

  function reportRates(system: string, what: string, rates: readonly number[], best: number): void {
    const say = (metric: string, value: number, unit: string) => report({ system, case: what, metric, value, unit });
    say('median', median(rates), 'tokens/s');
    say('least', Math.min(...rates), 'tokens/s');
    say('most', Math.max(...rates), 'tokens/s');
    say('share of the limit', (100 * median(rates)) / best, '%');
  }
}

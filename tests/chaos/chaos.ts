import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { prepareTemplate, type RunReport, runSeed } from './run-seed.ts';

/*
 * `npm run chaos [-- --seed N --runs N --seconds N --stop N]`: random faults under load against a real server process.
 * Each run prints its seed; the same seed makes the same plan of clients, requests and faults. `--stop` is the seconds
 * that stopped processes stay so: above 120, the server ends them as hung.
 */

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    runs: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '6' },
    stop: { type: 'string', default: '8' },
  },
});
const [seed, runs, seconds, stop] = [values.seed, values.runs, values.seconds, values.stop].map(Number) as [
  number,
  number,
  number,
  number,
];
if (![seed, runs, seconds, stop].every((value) => Number.isSafeInteger(value) && value >= 0)) {
  console.error(
    '--seed, --runs, --seconds and --stop are whole numbers, such as: npm run chaos -- --seed 7 --runs 10 --seconds 6',
  );
  process.exit(2);
}

const template = mkdtempSync(join(tmpdir(), 'assay-chaos-'));
const failed: number[] = [];
try {
  await prepareTemplate(template);
  for (let run = 0; run < runs; run++) {
    const report = await runSeed(seed + run, { seconds, stopMs: stop * 1000, recoveryMs: 5_000, template });
    print(seed + run, report, run === 0);
    if (report.violations.length > 0) failed.push(seed + run);
  }
} finally {
  rmSync(template, { recursive: true, force: true });
}
console.log(failed.length === 0 ? `${runs} runs, no violation` : `violations with the seeds ${failed.join(', ')}`);
if (failed.length > 0) process.exitCode = 1;

function print(
  seed: number,
  { plan, missing, outcomes, startMs, recoveryMs, violations }: RunReport,
  first: boolean,
): void {
  if (first)
    for (const [fault, reason] of Object.entries(missing)) console.error(`SKIPPED FAULT "${fault}": ${reason}`);
  const ends = Object.entries(outcomes).map(([name, count]) => `${name} × ${count}`);
  console.log(
    `seed ${seed}: ${plan}; ${ends.join(', ')}; started in ${startMs} ms, back after a kill in ${recoveryMs} ms`,
  );
  for (const violation of violations) console.error(`  VIOLATED ${violation}`);
}

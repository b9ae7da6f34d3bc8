import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { reportMachine } from './machine.ts';
import type { Figure, Report } from './report.ts';
import { keepFigures } from './results.ts';

/**
 * `npm run bench -- <name> [--json] [--save] [arguments]` runs `benchmarks/<name>/bench.ts`, whose `run` reports
 * figures. `--save` keeps them in `benchmarks/results/`, for the page; not those of `--quick`, which measure nothing.
 * Without a name all are run and kept, and the page is written (`all/bench.ts`); `page` writes it from what is kept.
 */
interface Benchmark {
  run(report: Report, args: readonly string[]): Promise<void>;
}

const given = process.argv.slice(2);
const name = given[0]?.startsWith('--') ? 'all' : (given.shift() ?? 'all');
const json = given.includes('--json');
const names = await benchmarkNames();
if (!names.includes(name)) {
  console.error(`Usage: npm run bench -- [name] [--json] [--save]\nBenchmarks: ${names.join(', ')}`);
  process.exit(2);
}
const figures: Figure[] = [];
const report: Report = ({ system, case: what, metric, value, unit }) => {
  const whole: Figure = { bench: name, system, case: what, metric, value, unit };
  figures.push(whole);
  console.log(json ? JSON.stringify(whole) : tableRow(whole));
};
const { run }: Benchmark = await import(`./${name}/bench.ts`);
const own = given.filter((arg) => arg !== '--save' && (arg !== '--json' || name === 'all'));
const measures = name !== 'all' && name !== 'page' && !own.includes('--help');
if (measures) await reportMachine(report);
await run(report, own);
if (measures && given.includes('--save') && !own.includes('--quick')) keepFigures(name, figures);

function tableRow({ system, case: what, metric, value, unit }: Figure): string {
  const shown = value >= 1000 ? String(Math.round(value)) : value.toPrecision(3);
  return `${what.padEnd(24)} ${system.padEnd(28)} ${metric.padEnd(20)} ${shown.padStart(10)} ${unit}`;
}

async function benchmarkNames(): Promise<string[]> {
  const folders = await readdir(import.meta.dirname);
  return folders.filter((folder) => existsSync(new URL(`${folder}/bench.ts`, import.meta.url))).sort();
}

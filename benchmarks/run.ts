import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { reportMachine } from './machine.ts';
import type { Figure, Report } from './report.ts';
import { keepFigures } from './results.ts';

/**
 * Describes the module of a benchmark, `benchmarks/<name>/bench.ts` or `benchmarks/single/<name>.ts`. Its `run` reports
 * figures.
 *
 * - `npm run bench -- <name> [--json] [--save] [arguments]` runs it. `--save` stores the figures in
 *   `benchmarks/results/`, but not with `--quick`, whose figures mean nothing.
 * - `npm run bench` runs all benchmarks, stores their figures and writes benchmarks/report.md (`single/all.ts`).
 * - `npm run bench -- page` writes that page from the stored figures.
 */
interface Benchmark {
  run(report: Report, args: readonly string[]): Promise<void>;
}

const given = process.argv.slice(2);
const name = given[0]?.startsWith('--') ? 'all' : (given.shift() ?? 'all');
const json = given.includes('--json');
const modules = await benchmarks();
const module = modules.get(name);
if (module === undefined) {
  const names = [...modules.keys()].sort().join(', ');
  console.error(`Usage: npm run bench -- [name] [--json] [--save]\nBenchmarks: ${names}`);
  process.exit(2);
}
const figures: Figure[] = [];
const report: Report = ({ system, case: what, metric, value, unit }) => {
  const whole: Figure = { bench: name, system, case: what, metric, value, unit };
  figures.push(whole);
  console.log(json ? JSON.stringify(whole) : tableRow(whole));
};
const { run }: Benchmark = await import(module);
const own = given.filter((arg) => arg !== '--save' && (arg !== '--json' || name === 'all'));
const measures = name !== 'all' && name !== 'page' && !own.includes('--help');
if (measures) await reportMachine(report);
await run(report, own);
if (measures && given.includes('--save') && !own.includes('--quick')) keepFigures(name, figures);

function tableRow({ system, case: what, metric, value, unit }: Figure): string {
  const shown = value >= 1000 ? String(Math.round(value)) : value.toPrecision(3);
  return `${what.padEnd(24)} ${system.padEnd(28)} ${metric.padEnd(20)} ${shown.padStart(10)} ${unit}`;
}

/** Returns the path of each benchmark's module, by name. */
async function benchmarks(): Promise<Map<string, string>> {
  const folders = await readdir(import.meta.dirname);
  const own = folders.map((name) => [name, `./${name}/bench.ts`] as const);
  const single = await readdir(new URL('single', import.meta.url));
  const all = [...own, ...single.map((file) => [basename(file, '.ts'), `./single/${file}`] as const)];
  return new Map(all.filter(([, path]) => existsSync(new URL(path, import.meta.url))));
}

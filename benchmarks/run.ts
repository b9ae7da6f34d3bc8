import { readdir } from 'node:fs/promises';
import type { Figure, Report } from './report.ts';

/**
 * `npm run bench -- <name> [--json] [arguments]` runs `benchmarks/<name>/bench.ts`, whose `run` reports figures. Without a name it
 * lists them.
 */
interface Benchmark {
  run(report: Report, args: readonly string[]): Promise<void>;
}

const [name, ...rest] = process.argv.slice(2);
const json = rest.includes('--json');
const names = await benchmarkNames();
if (name === undefined || !names.includes(name)) {
  console.error(`Usage: npm run bench -- <name> [--json]\nBenchmarks: ${names.join(', ')}`);
  process.exit(name === undefined ? 0 : 2);
}
const { run }: Benchmark = await import(`./${name}/bench.ts`);
await run(
  (figure) => print({ bench: name, ...figure }),
  rest.filter((arg) => arg !== '--json'),
);

function print(figure: Figure): void {
  console.log(json ? JSON.stringify(figure) : tableRow(figure));
}

function tableRow({ system, case: what, metric, value, unit }: Figure): string {
  const shown = value >= 1000 ? String(Math.round(value)) : value.toPrecision(3);
  return `${what.padEnd(24)} ${system.padEnd(28)} ${metric.padEnd(20)} ${shown.padStart(10)} ${unit}`;
}

async function benchmarkNames(): Promise<string[]> {
  const files = await readdir(import.meta.dirname, { recursive: true });
  return files.flatMap((file) => /^([^/\\]+)[/\\]bench\.ts$/.exec(file)?.[1] ?? []).sort();
}

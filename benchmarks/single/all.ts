import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SECTIONS } from '../page/sections/index.ts';
import type { Report } from '../report.ts';

const RUN = fileURLToPath(new URL('../run.ts', import.meta.url));
/** Names of the benchmarks that accept `--quick` for a short run. */
const HAVE_QUICK = new Set(['branches', 'hybrid', 'speed', 'forms', 'crowd', 'http', 'growth']);

const HELP = `npm run bench -- [--only=speed,edge] [--json] [--quick]

Every benchmark of the page, each in a process of its own; keeps the figures and writes the report: about an hour and a quarter.
--quick: as small as they can be, to see that they run; keeps and writes nothing. In this order: ${SECTIONS.map(({ bench }) => bench).join(', ')}`;

export async function run(_: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      json: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const names = SECTIONS.map(({ bench }) => bench);
  const wanted = values.only?.split(',') ?? names;
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`There is no benchmark ${unknown.join(', ')}.\n${HELP}`);
  const flags = (bench: string) => [
    ...(values.json ? ['--json'] : []),
    ...(values.quick ? (HAVE_QUICK.has(bench) ? ['--quick'] : []) : ['--save']),
  ];
  const failed: string[] = [];
  for (const bench of names.filter((name) => wanted.includes(name))) {
    const began = performance.now();
    console.error(`\n${bench}`);
    const good = runOne(bench, flags(bench));
    console.error(`${bench}: ${Math.round((performance.now() - began) / 1000)} s`);
    if (!good) failed.push(bench);
  }
  if (!values.quick) runOne('page');
  if (failed.length > 0) throw new Error(`Not measured, so what is kept of them is old: ${failed.join(', ')}`);
}

function runOne(bench: string, more: readonly string[] = []): boolean {
  return spawnSync(process.execPath, [RUN, bench, ...more], { stdio: 'inherit' }).status === 0;
}

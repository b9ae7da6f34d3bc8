import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { KEY, startServer } from '../http/server.ts';
import { SECTIONS } from '../page/sections.ts';

const RUN = fileURLToPath(new URL('../run.ts', import.meta.url));

/** Runs every benchmark of the page, each in a process of its own, keeps the figures, and writes the page: about an hour. */
export async function run(): Promise<void> {
  const failed: string[] = [];
  for (const { bench } of SECTIONS) {
    if (!readdirSync(new URL('..', import.meta.url)).includes(bench)) continue;
    console.log(`\n${bench}`);
    const good = bench === 'quality' ? await withServer((more) => runOne(bench, more)) : runOne(bench);
    if (!good) failed.push(bench);
  }
  runOne('page');
  if (failed.length > 0) throw new Error(`Not measured, so their figures are the old ones: ${failed.join(', ')}`);
}

function runOne(bench: string, more: readonly string[] = []): boolean {
  return spawnSync(process.execPath, [RUN, bench, '--save', ...more], { stdio: 'inherit' }).status === 0;
}

async function withServer(work: (more: readonly string[]) => boolean): Promise<boolean> {
  const server = await startServer();
  try {
    return work(['--url', server.url, '--key', KEY]);
  } finally {
    await server.stop();
  }
}

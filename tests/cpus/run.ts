import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { kernelFamily } from '../../runtime/compile/kernels.ts';
import { compileModel, type RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { writeFamily } from '../oracle/family-fixture.ts';
import { writeGgufFixture } from '../oracle/gguf-fixture.ts';
import { CPU_MODELS } from './cpu-models.ts';
import { CACHE, emulatedNode } from './emulator.ts';
import { ASKED, PRECISION_BOUNDS, PUBLISHED, prepare } from './precision-error.ts';

/*
 * `npm run test:cpus [-- Haswell cortex-a57 …]` checks 8-bit and 4-bit numbers on emulated CPUs (qemu). A CPU that
 * cannot be emulated here is skipped, with the reason.
 */

/** One CPU takes about a minute of processor time, of which a busy machine gives it little. */
const LIMIT_MS = 1_200_000;
const CHECK = join(CACHE, 'check.mjs');
const MODELS = join(CACHE, 'models');
const CONTEXT = 256;

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !CPU_MODELS.some(({ cpu }) => cpu === name));
if (unknown) {
  console.error(`${unknown} is not known. There are: ${CPU_MODELS.map(({ cpu }) => cpu).join(', ')}`);
  process.exit(2);
}
await bundleCheck();
await prepareModels();
console.log(
  `This machine: ${kernelFamily()}. AVX-512 and VNNI are not emulated; npm test covers what this machine has.`,
);
let failed = 0;
let skipped = 0;
for (const model of CPU_MODELS.filter(({ cpu }) => wanted.length === 0 || wanted.includes(cpu))) {
  const command = emulatedNode(model);
  const name = `${model.cpu} (${model.arch}, ${model.kernels})`;
  if ('missing' in command) {
    skipped++;
    console.log(`SKIPPED ${name}: ${command.missing}`);
    continue;
  }
  const began = performance.now();
  console.log(name);
  const [program, ...args] = command;
  const { status, error } = spawnSync(program!, [...args, CHECK, model.cpu, MODELS], {
    stdio: ['ignore', 'inherit', 'ignore'],
    timeout: LIMIT_MS,
  });
  if (error || status !== 0) {
    failed++;
    console.log(`FAILED ${name}: ${error ? error.message : `exit code ${status}`}`);
  }
  console.log(`  ${((performance.now() - began) / 1000).toFixed(1)} s`);
}
console.log(`${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 ? 1 : 0;

/** Compiles the models that are checked: the files are the same on every CPU, and an emulated one takes much longer. */
async function prepareModels(): Promise<void> {
  rmSync(MODELS, { recursive: true, force: true });
  for (const [index, [fixture, file, precision]] of PRECISION_BOUNDS.entries()) {
    const folder = join(MODELS, String(index));
    mkdirSync(folder, { recursive: true });
    await prepare(folder, fixture, file, precision);
  }
  const file = join(MODELS, PUBLISHED);
  mkdirSync(file);
  writeGgufFixture(file, 'q4_1');
  await compile(file, 'published');
  for (const { family, precision } of ASKED) {
    const folder = join(MODELS, `${family} ${precision}`);
    mkdirSync(folder);
    writeFamily(folder, family, CONTEXT);
    await compile(folder, precision);
  }
}

async function compile(source: string, precision: RequestedPrecision): Promise<void> {
  const target = join(source, 'compiled');
  await compileModel({ source, target, device: 'CPU', precision, maxPromptLen: CONTEXT, threads: 1 });
}

/** Bundles the check; each of its files keeps its address. Emulated, Node takes six seconds to strip its types. */
async function bundleCheck(): Promise<void> {
  const addressed = async (path: string): Promise<string> =>
    (await readFile(path, 'utf8'))
      .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path)))
      .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
  await build({
    entryPoints: [join(import.meta.dirname, 'check.ts')],
    outfile: CHECK,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    plugins: [
      {
        name: 'addresses',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.ts$/ }, async ({ path }) => ({ contents: await addressed(path), loader: 'ts' })),
      },
    ],
  });
}

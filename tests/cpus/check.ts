import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { kernelFamily } from '../../runtime/compile/kernels.ts';
import { readManifest, readReference } from '../../runtime/compile/manifest.ts';
import { PackedForward } from '../../runtime/engine/forward/packed-forward.ts';
import { kvShape, sessionOptions } from '../../runtime/engine/model.ts';
import {
  int8ProductsSaturate,
  largestProductsAreExact,
  referenceError,
} from '../../runtime/engine/self-check/self-check.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { INDEPENDENT_KERNELS } from '../../runtime/worker/load-model.ts';
import { modelFixture } from '../fixture.ts';
import { largestBlockProductsError } from './largest-block-products.ts';
import { checkPrecision, checkPrepared, PRECISION_BOUNDS } from './precision-error.ts';

/*
 * Runs the checks of one CPU under its emulation: `check.ts saturates|exact FOLDER`, with the folder of the prepared
 * models. Prints a line for each; exit code 1 if one fails.
 */

function check(what: string, holds: boolean, figure?: number): void {
  const shown = figure === undefined ? '' : `: ${figure.toPrecision(3)}`;
  console.log(`  ${holds ? 'ok  ' : 'FAIL'} ${what}${shown}`);
  if (!holds) process.exitCode = 1;
}

const [kind, models = ''] = process.argv.slice(2);
const expected = kind === 'saturates';
const saturates = await int8ProductsSaturate();
check(`the fastest 8-bit kernels ${expected ? 'clamp sums' : 'are exact'}`, saturates === expected);
check('8-bit products are exact with our options', await largestProductsAreExact(await sessionOptions(1)));
const clamped = await largestBlockProductsError();
check('sums in blocks of 8 bits are not clamped', clamped < 0.01, clamped);
const measured = INDEPENDENT_KERNELS.has(kernelFamily());
for (const [index, [fixture, file, precision, bound]] of PRECISION_BOUNDS.entries()) {
  // A published graph in 4 bits has other numbers on each CPU, so both are computed on this one.
  const own = precision === 'keep';
  const checking = own ? checkPrecision(fixture, file, precision) : checkPrepared(join(models, String(index)));
  const { error, independent } = await checking;
  check(`${fixture} as ${precision} is off by less than ${bound}`, error < bound, error);
  check(`${fixture} as ${precision} answers ${independent ? '' : 'not '}the same in company`, independent || !measured);
}

const folder = mkdtempSync(join(tmpdir(), 'assay-cpu-'));
try {
  const source = modelFixture('genai/llama');
  const { precision, choice } = await compileModel({
    source,
    target: folder,
    device: 'CPU',
    precision: 'auto',
    maxPromptLen: 64,
  });
  check(`auto takes ${precision}, ${choice.reason}`, precision === 'int8');
  if (saturates) check('the check at load would find clamped sums', (await clampedError(folder)) > choice.errorLimit!);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Returns the error of a compiled precision that runs with onnxruntime's own choice of kernels. */
async function clampedError(compiled: string): Promise<number> {
  const manifest = readManifest(compiled);
  const session = await InferenceSession.create(join(compiled, manifest.graph), { logSeverityLevel: 3 });
  const error = await referenceError(new PackedForward(session, manifest), kvShape(manifest), readReference(compiled));
  await session.release();
  return error;
}

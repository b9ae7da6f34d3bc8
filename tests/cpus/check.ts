import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { KERNEL_BLOCKS, kernelFamily } from '../../runtime/compile/kernels.ts';
import { readManifest, readReference } from '../../runtime/compile/manifest.ts';
import { PackedForward } from '../../runtime/engine/forward/packed-forward.ts';
import type { BranchSpec } from '../../runtime/engine/job-spec.ts';
import { kvShape, openModel, sessionOptions } from '../../runtime/engine/model.ts';
import { Random } from '../../runtime/engine/random.ts';
import {
  int8ProductsSaturate,
  largestProductsAreExact,
  referenceError,
} from '../../runtime/engine/self-check/self-check.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { modelFixture } from '../fixture.ts';
import { answer, engineFor, GREEDY } from '../oracle/fixtures.ts';
import { largestBlockProductsError } from './largest-block-products.ts';
import { checkPrecision, checkPrepared, PRECISION_BOUNDS } from './precision-error.ts';

/*
 * Runs the checks of one CPU under its emulation: `check.ts saturates|exact FOLDER`, with the folder of the prepared
 * models. Prints a line for each; exit code 1 if one fails.
 */

/** Precisions in which questions are answered alone and in company, each with one model. */
const ANSWERED = new Set<string>(['float', 'int4']);

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
const measured = KERNEL_BLOCKS.has(kernelFamily());
for (const [index, [fixture, file, precision, bound]] of PRECISION_BOUNDS.entries()) {
  // A published graph in 4 bits has other numbers on each CPU, so both are computed on this one.
  const own = precision === 'keep';
  const checking = own ? checkPrecision(fixture, file, precision) : checkPrepared(join(models, String(index)));
  const { error, independent } = await checking;
  check(`${fixture} as ${precision} is off by less than ${bound}`, error < bound, error);
  check(`${fixture} as ${precision} answers the same in company`, independent || !measured);
}
for (const [index, [fixture, , precision]] of PRECISION_BOUNDS.entries()) {
  if (!measured || !ANSWERED.has(precision)) continue;
  ANSWERED.delete(precision);
  const differing = await answersThatDiffer(join(models, String(index)));
  check(`no answer of ${fixture} as ${precision} differs in company`, differing === 0, differing);
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

/**
 * Asks questions about a text alone; then together, beside two chats and the same questions about another text; again
 * from the cache; and after a part of the text. Returns how many answers have other bits than alone.
 *
 * @param folder where `prepare` wrote the model
 */
async function answersThatDiffer(folder: string): Promise<number> {
  const model = await openModel(join(folder, 'compiled'), { threads: 1 });
  const random = new Random(5);
  const tokens = (length: number) => Array.from({ length }, () => 10 + Math.floor(random.uniform() * 200));
  const common = { constraint: null, sampling: GREEDY, endTokens: new Set<number>() };
  const questions: BranchSpec[] = [
    { ...common, suffix: tokens(3), maxTokens: 2, choice: { paths: [4, 1, 6].map(tokens) } },
    { ...common, suffix: tokens(6), maxTokens: 3 },
    { ...common, suffix: tokens(20), maxTokens: 2 },
  ];
  // Not whole blocks of four cells or rows.
  const [text, other] = [tokens(33), tokens(22)];
  const alone: string[] = [];
  for (const question of questions) alone.push(...(await answer(engineFor(model), text, [question])));
  const shared = engineFor(model);
  const chats = [10, 13].map((length) => {
    const chat = { ...common, suffix: tokens(3), maxTokens: 4 };
    return answer(shared, tokens(length), [chat], { apart: false });
  });
  const others = answer(shared, other, questions);
  const beside = await answer(shared, text, questions);
  await Promise.all([others, ...chats]);
  const cached = await answer(shared, text, questions);
  // The beginning of a text is in the cache, and ends in the middle of a block.
  const grown = engineFor(model);
  await answer(grown, text.slice(0, 30), questions.slice(0, 1));
  const after = await answer(grown, text, questions);
  await model.close();
  return [beside, cached, after].flat().filter((found, index) => found !== alone[index % alone.length]).length;
}

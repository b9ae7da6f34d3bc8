import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { CHATS, TASKS_AMONG, Ways } from '../../benchmarks/independence/ways.ts';
import { KERNEL_BLOCKS, kernelFamily } from '../../runtime/compile/kernels.ts';
import { readManifest, readReference } from '../../runtime/compile/manifest.ts';
import { PackedForward } from '../../runtime/engine/forward/packed-forward.ts';
import type { BranchSpec } from '../../runtime/engine/job-spec.ts';
import { type EngineModel, kvShape, openModel, sessionOptions } from '../../runtime/engine/model.ts';
import { Random } from '../../runtime/engine/random.ts';
import {
  int8ProductsSaturate,
  largestProductsAreExact,
  referenceError,
} from '../../runtime/engine/self-check/self-check.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { modelFixture } from '../fixture.ts';
import { engineFor, GREEDY, planOf } from '../oracle/fixtures.ts';
import { CPU_MODELS } from './cpu-models.ts';
import { largestBlockProductsError } from './largest-block-products.ts';
import { ASKED, checkPrecision, checkPrepared, PRECISION_BOUNDS, PUBLISHED } from './precision-error.ts';

/*
 * Runs the checks of one CPU under its emulation: `check.ts CPU FOLDER`, with the folder of the prepared models. Prints
 * a line for each; exit code 1 if one fails.
 */

/** Precisions in which questions are answered alone and in company, each with one model. */
const ANSWERED = new Set<string>(['float', 'int8', 'int4']);
/** Number of tasks among which those of a family are answered: two groups of them, which take less time than 16. */
const FEWER_TASKS = 32;

function check(what: string, holds: boolean, figure?: number): void {
  const shown = figure === undefined ? '' : `: ${figure.toPrecision(3)}`;
  console.log(`  ${holds ? 'ok  ' : 'FAIL'} ${what}${shown}`);
  if (!holds) process.exitCode = 1;
}

const [cpu = '', models = ''] = process.argv.slice(2);
const { saturates: expected, only } = CPU_MODELS.find((one) => one.cpu === cpu)!;
const saturates = await int8ProductsSaturate();
check(`the fastest 8-bit kernels ${expected ? 'clamp sums' : 'are exact'}`, saturates === expected);
check('8-bit products are exact with our options', await largestProductsAreExact(await sessionOptions(1)));
const clamped = await largestBlockProductsError();
check('sums in blocks of 8 bits are not clamped', clamped < 0.01, clamped);
const measured = KERNEL_BLOCKS.has(kernelFamily());
for (const [index, [fixture, file, precision, bound]] of PRECISION_BOUNDS.entries()) {
  if (only && precision !== only) continue;
  const name = `${fixture} as ${precision}`;
  const asks = measured && ANSWERED.delete(precision);
  const use = asks ? (model: EngineModel) => checkAnswers(name, model) : undefined;
  // A published graph in 4 bits has other numbers on each CPU, so both are computed on this one.
  const own = precision === 'keep';
  const checking = own ? checkPrecision(fixture, file, precision) : checkPrepared(join(models, String(index)), use);
  const { error, independent } = await checking;
  check(`${name} is off by less than ${bound}`, error < bound, error);
  check(`at the load, ${name} answers the same in company`, independent || !measured);
}
for (const { family, precision, on } of ASKED) {
  if (!measured || (only && precision !== only)) continue;
  const name = `${family} as ${precision}`;
  if (!on || on.includes(cpu)) await checkAsked(`${family} ${precision}`, name, FEWER_TASKS);
  else console.log(`  --   ${name} is asked on ${on.join(' and ')} only`);
}
if (measured && !only) await checkAsked(PUBLISHED, 'a GGUF file as published');

if (!only) await checkAuto();

/** Checks that `auto` takes 8 bits. */
async function checkAuto(): Promise<void> {
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
    if (saturates)
      check('the check at load would find clamped sums', (await clampedError(folder)) > choice.errorLimit!);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the error of a compiled precision that runs with onnxruntime's own choice of kernels. */
async function clampedError(compiled: string): Promise<number> {
  const manifest = readManifest(compiled);
  const session = await InferenceSession.create(join(compiled, manifest.graph), { logSeverityLevel: 3 });
  const error = await referenceError(new PackedForward(session, manifest), kvShape(manifest), readReference(compiled));
  await session.release();
  return error;
}

/** Checks a model that was prepared to be asked only. */
async function checkAsked(folder: string, name: string, most?: number): Promise<void> {
  const model = await openModel(join(models, folder, 'compiled'), { threads: 1 });
  check(`at the load, ${name} answers the same in company`, model.independent);
  await checkAnswers(name, model, most);
  await model.close();
}

/** Checks that answers to questions about a text have the same bits in company as alone. */
async function checkAnswers(name: string, model: EngineModel, most = TASKS_AMONG): Promise<void> {
  const random = new Random(5);
  const tokens = (length: number) => Array.from({ length }, () => 10 + Math.floor(random.uniform() * 200));
  const common = { constraint: null, sampling: GREEDY, endTokens: new Set<number>() };
  const tasks: BranchSpec[] = [
    { ...common, suffix: tokens(3), maxTokens: 2, choice: { paths: [4, 1, 6].map(tokens) } },
    { ...common, suffix: tokens(6), maxTokens: 3 },
    { ...common, suffix: tokens(20), maxTokens: 2 },
  ];
  const short = (_: unknown, index: number): BranchSpec => ({
    ...{ ...common, suffix: tokens(1 + (index % 3)), maxTokens: 1 },
    ...(index % 4 === 0 ? { choice: { paths: [1, 2].map((length) => [...tokens(length), 9]) } } : {}),
  });
  const ways = new Ways<readonly number[], BranchSpec>(model, {
    engine: (kvBytes) => engineFor(model, kvBytes ? { kvBytes } : {}),
    plan: planOf,
    chat: (text) => ({ prefix: text, branches: [{ ...common, suffix: tokens(3), maxTokens: 9 }], budget: 9 }),
  });
  // Not whole blocks of four cells or rows.
  const [text, other] = [tokens(33), tokens(22)];
  const company = {
    beside: [{ text: other, tasks }],
    texts: Array.from({ length: CHATS }, (_, chat) => tokens(16 + chat)),
    most,
    others: (count: number) => Array.from({ length: count }, short),
  };
  const differing: string[] = [];
  for await (const { way, alone, answers } of ways.compare({ text, tasks }, company))
    if (answers.some((answer, index) => answer !== alone[index])) differing.push(way);
  check(
    `no answer of ${name} differs in company${differing.map((way) => `, ${way}`).join('')}`,
    differing.length === 0,
  );
}

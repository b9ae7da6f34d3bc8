import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type Asker, finished, type Request } from '../../benchmarks/independence/ways.ts';
import { at } from '../../lib/at.ts';
import { readManifest, writeManifest } from '../../runtime/compile/manifest.ts';
import { Engine, type EngineOptions } from '../../runtime/engine/engine.ts';
import type { BranchSpec, JobSpec } from '../../runtime/engine/job-spec.ts';
import { type EngineModel, kvShape, openModel } from '../../runtime/engine/model.ts';
import type { KvType } from '../../runtime/graph/graph-builder.ts';
import { type CompileOptions, compileModel, type RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { modelFixture } from '../fixture.ts';

export interface GoldenCase {
  prompt: number[];
  greedy: number[];
  gap: number;
  /** Logits after the prompt, of checkpoints. */
  logits?: number[];
}

/**
 * Differences between CPUs and their kernels stay below 1e-5 in floats; a choice this clear is the same on all of them.
 */
const CLEAR_GAP = 1e-4;

/** Returns PyTorch's choices after some prompts. Throws if one was so close that another CPU might choose otherwise. */
export function goldenCases(fixture: string): GoldenCase[] {
  const golden: Readonly<Record<string, GoldenCase[]>> = JSON.parse(
    readFileSync(modelFixture(`${dirname(fixture)}/golden.json`), 'utf8'),
  );
  const cases = golden[basename(fixture)];
  if (!cases) throw new Error(`${fixture} has no golden cases`);
  const close = cases.find(({ gap }) => !(gap > CLEAR_GAP));
  if (close)
    throw new Error(`${fixture}: a golden choice with a gap of ${close.gap}. Choose another prompt in make.py.`);
  return cases;
}

interface FixtureOptions {
  maxPromptLen?: number;
  kvType?: KvType;
  /** Runs all fixed shapes with one graph for any shape, as devices with kernels of their own do. Default: false. */
  oneGraph?: boolean;
  slots?: number;
  /** Default: 1. */
  threads?: number;
  /** Keeps the second graph that small models have for runs of one sequence. Default: true. */
  secondGraph?: boolean;
}

/** Compiles a fixture into a temporary folder and loads it; `close` removes it. */
export async function compileFixture(
  fixture: string,
  precision: RequestedPrecision,
  fixedShapes?: CompileOptions['fixedShapes'],
  {
    maxPromptLen = 512,
    kvType = 'float32',
    oneGraph = false,
    slots,
    threads = 1,
    secondGraph = true,
  }: FixtureOptions = {},
): Promise<EngineModel> {
  const target = mkdtempSync(join(tmpdir(), 'assay-compiled-'));
  const source = modelFixture(fixture);
  await compileModel({
    source,
    target,
    device: 'CPU',
    precision,
    maxPromptLen,
    threads,
    ...(fixedShapes ? { fixedShapes } : {}),
    ...(slots ? { slots } : {}),
  });
  if (kvType === 'float16') chooseHalfKv(target);
  if (oneGraph) chooseOneGraph(target);
  if (!secondGraph) dropSecondGraph(target);
  const model = await openModel(target, { threads });
  return {
    ...model,
    async close() {
      await model.close();
      rmSync(target, { recursive: true, force: true });
    },
  };
}

/** Makes a model over fixed shapes use its graphs with 16-bit keys and values, which otherwise only devices do. */
function chooseHalfKv(folder: string): void {
  const manifest = readManifest(folder);
  const { halfBodies: bodies = [], ...graphs } = manifest.static!;
  writeManifest(folder, { ...manifest, static: { ...graphs, kvType: 'float16', bodies } });
}

/** Makes a model over fixed shapes run all of them with its graph for any shape. */
function chooseOneGraph(folder: string): void {
  const manifest = readManifest(folder);
  const { anyShape, kvType, ...graphs } = manifest.static!;
  const bodies = graphs.bodies.map((body) => ({ ...body, graph: anyShape![kvType] }));
  writeManifest(folder, { ...manifest, static: { ...graphs, kvType, bodies } });
}

/** Makes a small model compute all runs with its graph with slots, as larger models do. */
function dropSecondGraph(folder: string): void {
  const { alone, ...manifest } = readManifest(folder);
  if (!alone) throw new Error('the model has no second graph');
  writeManifest(folder, manifest);
}

export function engineFor(
  { manifest, forward }: Pick<EngineModel, 'manifest' | 'forward'>,
  options: Partial<EngineOptions> = {},
): Engine {
  const { maxPromptLen, contextLength } = manifest;
  const onBatchFailed = (cause: unknown) => {
    throw cause;
  };
  const kv = kvShape(manifest);
  return new Engine({ forward, kv, maxPromptLen, contextLength, kvBytes: 32 << 20, onBatchFailed, ...options });
}

export const GREEDY = { temperature: 0, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: 1 };

/** Plans the job of questions about a text. Answers are JSON text, whose numbers are as exact as they are computed. */
export function planOf(
  { text, tasks }: Request<readonly number[], BranchSpec>,
  { apart = true } = {},
): ReturnType<Asker<readonly number[], BranchSpec>['plan']> {
  const chosen: number[][] = tasks.map(() => []);
  const onToken: JobSpec['onToken'] = (branch, { logprob }) => {
    at(chosen, branch).push(logprob ?? 0);
    return undefined;
  };
  return {
    job: { apart, prefix: text, branches: tasks, budget: 1000, onToken },
    answers: async ({ branches }) =>
      branches.map(({ option, tokens }, index) => JSON.stringify([option?.logprobs, tokens, chosen[index]])),
  };
}

/** Answers questions about a text. */
export async function answer(
  engine: Engine,
  text: readonly number[],
  tasks: readonly BranchSpec[],
  { apart = true } = {},
): Promise<string[]> {
  const { job, answers } = planOf({ text, tasks }, { apart });
  return answers(await finished(engine, engine.submit({ ...job, id: 'x', deadline: Number.POSITIVE_INFINITY })));
}

/** Returns a model's greedy continuation of a prompt, without bounds: the most probable token, `count` times. */
export async function continueGreedily(
  model: EngineModel,
  prompt: readonly number[],
  count: number,
): Promise<number[]> {
  const engine = engineFor(model);
  const sampling = { temperature: 0, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null };
  const branch = {
    suffix: prompt.slice(-1),
    constraint: null,
    sampling,
    maxTokens: count,
    endTokens: new Set<number>(),
  };
  const job = { id: 'greedy', prefix: prompt.slice(0, -1), branches: [branch], budget: count };
  const answer = engine.submit({ ...job, deadline: Number.POSITIVE_INFINITY });
  await drive(engine);
  engine.checkIntegrity();
  return [...(await answer).branches[0]!.tokens];
}

/** Steps until no work is left. */
export async function drive(engine: Engine): Promise<void> {
  while (await engine.step());
}

import { Engine, type EngineOptions } from '../../runtime/engine/engine.ts';
import type { BranchSpec, JobResult, JobSpec } from '../../runtime/engine/job-spec.ts';
import { type EngineModel, kvShape, openModel } from '../../runtime/engine/model.ts';
import type { Limits } from '../../runtime/engine/scheduler/limits.ts';
import { type Cost, measure } from '../systems/measure.ts';
import { THREADS } from '../systems/start.ts';
import type { ChoicesWork } from '../systems/system.ts';
import { randomTokens, W } from './tokens.ts';

const GREEDY = { temperature: 0, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null };

/** Returns workload W with `tasks` tasks. Use a new seed for a new context, which no cache has yet. */
export function workload(tasks: number, seed: number): JobSpec {
  return job(
    randomTokens(W.context, seed),
    Array.from({ length: tasks }, (_, task) => open(randomTokens(W.task, seed * 1000 + task), W.answer)),
  );
}

/** Returns the tasks of W as choices between three options of one to three tokens. */
export function optionsWorkload(tasks: number, seed: number): JobSpec {
  const branches = Array.from({ length: tasks }, (_, task): BranchSpec => {
    const [a, b, c, end] = randomTokens(4, seed * 1000 + task + 500) as [number, number, number, number];
    const suffix = randomTokens(W.task, seed * 1000 + task);
    return {
      ...open(suffix, 16),
      choice: {
        paths: [
          [a, end],
          [b, end],
          [b, c, end],
        ],
      },
    };
  });
  return job(randomTokens(W.context, seed), branches);
}

/** Returns questions with three options of one token each. */
export function choices({ questions, seed, context, question }: ChoicesWork): JobSpec {
  const branches = Array.from({ length: questions }, (_, i): BranchSpec => {
    const paths = randomTokens(3, seed * 1000 + i + 500).map((token) => [token]);
    return { ...open(randomTokens(question, seed * 1000 + i), 1), choice: { paths } };
  });
  return job(randomTokens(context, seed), branches);
}

export function chat(prompt: number, answer: number, seed: number): JobSpec {
  const tokens = randomTokens(prompt, seed);
  return { ...job(tokens.slice(0, -1), [open(tokens.slice(-1), answer)]), apart: false };
}

export function engineOf(
  { manifest, forward }: EngineModel,
  limits: Partial<Limits> = {},
  options: Partial<EngineOptions> = {},
): Engine {
  const { maxPromptLen, contextLength } = manifest;
  const kv = kvShape(manifest);
  return new Engine({ forward, kv, maxPromptLen, contextLength, kvBytes: 256 << 20, limits, ...options });
}

/** Runs one job on the engine and measures its wall time and processor time. */
export function answer(engine: Engine, work: JobSpec): Promise<Cost & { result: JobResult }> {
  return measure(async () => {
    const done = engine.submit(work);
    while (await engine.step());
    return done;
  });
}

/** Returns the lowest wall time and the lowest processor time of several measurements. */
export async function best(runs: number, once: () => Promise<Cost>): Promise<Cost> {
  const least: Cost = { ms: Number.POSITIVE_INFINITY, cpuMs: Number.POSITIVE_INFINITY };
  for (let run = 0; run < runs; run++) {
    const { ms, cpuMs } = await once();
    least.ms = Math.min(least.ms, ms);
    least.cpuMs = Math.min(least.cpuMs, cpuMs);
  }
  return least;
}

export function openForBenchmark(folder: string): Promise<EngineModel> {
  return openModel(folder, { threads: THREADS });
}

function job(prefix: number[], branches: BranchSpec[]): JobSpec {
  const bounds = { budget: Number.MAX_SAFE_INTEGER, deadline: Number.POSITIVE_INFINITY };
  return { id: 'benchmark', apart: true, prefix, branches, ...bounds };
}

function open(suffix: number[], maxTokens: number): BranchSpec {
  return { suffix, constraint: null, sampling: GREEDY, maxTokens, endTokens: new Set() };
}

import fc from 'fast-check';
import { expect } from 'vitest';
import { AssayError } from '../../lib/errors.ts';
import type { Engine } from '../../runtime/engine/engine.ts';
import type { BranchSpec, JobResult, JobSpec } from '../../runtime/engine/job-spec.ts';
import type { EngineModel } from '../../runtime/engine/model.ts';
import { engineFor } from './fixtures.ts';
import { Oracle, type OracleBranch, type PlainModel } from './oracle.ts';
import { PatternConstraint, type PatternStep } from './pattern-constraint.ts';

const GREEDY = { temperature: 0, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null };

/** A branch as data, from which the same constraint can be created repeatedly. */
interface BranchPlan {
  suffix: number[];
  paths: number[][] | null;
  steps: PatternStep[] | null;
  maxTokens: number;
  endTokens: number[];
}

interface JobPlan {
  prefix: number[];
  branches: BranchPlan[];
  budget: number;
  /** Steps after which the caller leaves; null: stays. */
  leavesAfter: number | null;
  /** Steps after which the deadline passes; null: never. */
  deadline: number | null;
}

/** Generates random jobs, limits and cache sizes over a vocabulary. */
function scenarios(vocabSize: number) {
  /** Often one of a few, so that a text repeats itself and drafts are right now and then. */
  const token = fc.oneof(fc.integer({ min: 0, max: vocabSize - 1 }), fc.integer({ min: 0, max: 3 }));
  const tokens = (minLength: number, maxLength: number) => fc.array(token, { minLength, maxLength });

  const step: fc.Arbitrary<PatternStep> = fc.oneof(
    tokens(1, 5).map((forced) => ({ forced })),
    fc.record({ among: fc.uniqueArray(token, { minLength: 1, maxLength: 40 }), times: fc.integer({ min: 1, max: 3 }) }),
  );

  /**
   * Few different tokens, so that options share prefixes; a last token of their own, so that none is a prefix of
   * another.
   */
  const paths = fc
    .uniqueArray(fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 5 }), {
      minLength: 1,
      maxLength: 12,
      selector: (path) => path.join(),
    })
    .map((all) => all.map((path) => [...path.map((one) => one * 40), 9]));

  const branch: fc.Arbitrary<BranchPlan> = fc.record({
    suffix: tokens(1, 12),
    paths: fc.option(paths, { freq: 2 }),
    steps: fc.option(fc.array(step, { maxLength: 4 }), { freq: 2 }),
    maxTokens: fc.integer({ min: 1, max: 10 }),
    endTokens: fc.uniqueArray(token, { maxLength: 30 }),
  });

  /** Contexts with a common beginning, so that the prefix cache has something to find. */
  const contexts = fc.array(tokens(1, 50), { minLength: 1, maxLength: 2 });

  return contexts.chain((bases) =>
    fc.record({
      jobs: fc.array(
        fc.record<JobPlan>({
          prefix: fc
            .tuple(fc.constantFrom(...bases), fc.nat(50), tokens(0, 8))
            .map(([base, cut, more]) => [...base.slice(0, cut), ...more]),
          branches: fc.array(branch, { minLength: 1, maxLength: 6 }),
          budget: fc.oneof(fc.integer({ min: 0, max: 12 }), fc.constant(200)),
          leavesAfter: fc.option(fc.nat(6), { freq: 5 }),
          deadline: fc.option(fc.nat(8), { freq: 8 }),
        }),
        { minLength: 1, maxLength: 6 },
      ),
      together: fc.boolean(),
      /** Branches apart from their prefix (`EngineOptions.apart`). */
      parts: fc.boolean(),
      limits: fc.record({
        tokens: fc.integer({ min: 1, max: 60 }),
        tokensBesideDecode: fc.integer({ min: 1, max: 30 }),
        rows: fc.integer({ min: 1, max: 16 }),
        draftRows: fc.integer({ min: 0, max: 24 }),
        group: fc.integer({ min: 1, max: 6 }),
        groupTokens: fc.integer({ min: 8, max: 200 }),
        longSuffix: fc.integer({ min: 2, max: 40 }),
        cells: fc.integer({ min: 8, max: 200 }),
      }),
      // from "no budget to keep anything" to plenty
      kvBytes: fc.constantFrom(1, 600_000, 8 << 20),
      maxRunning: fc.integer({ min: 1, max: 8 }),
    }),
  );
}

/** The comparison of a model's answers with the oracle's. */
export interface Tolerance {
  /** Choices that are closer than this prove nothing. */
  nearTie: number;
  /** The allowed distance of an option's log-probability, the sum over its tokens, from the oracle's. */
  apart: number;
}

/** Checks that the engine answers like a decoder without cache and packing, in `runs` random scenarios. */
export async function checkAgainstOracle(
  model: Pick<EngineModel, 'manifest' | 'forward'>,
  plain: PlainModel,
  runs: number,
  { nearTie, apart }: Tolerance,
): Promise<void> {
  const oracle = new Oracle(plain);
  const { contextLength, vocabSize } = model.manifest;
  await fc.assert(
    fc.asyncProperty(scenarios(vocabSize), async ({ jobs, together, parts, limits, kvBytes, maxRunning }) => {
      const expected: OracleBranch[][] = [];
      oracle.gap = Number.POSITIVE_INFINITY;
      for (const [id, plan] of jobs.entries()) {
        expected.push(await oracle.answer(jobOf(plan, id), contextLength));
      }
      fc.pre(nearTie === 0 || oracle.gap > nearTie);

      const clock = { steps: 0 };
      const engine = engineFor(model, { limits, kvBytes, maxRunning, apart: parts, now: () => clock.steps });
      const results: Outcome[] = [];
      if (together) results.push(...(await run(engine, jobs, clock)));
      else for (const plan of jobs) results.push(...(await run(engine, [plan], clock)));
      engine.checkIntegrity();

      for (const [id, result] of results.entries()) {
        if (result === 'left') expect(jobs[id]!.leavesAfter).not.toBeNull();
        else if (result === 'late') expect(jobs[id]!.deadline).not.toBeNull();
        else compare(result, expected[id]!, jobs[id]!, apart);
      }
    }),
    { numRuns: runs },
  );
}

function jobOf(plan: JobPlan, id: number): JobSpec {
  return {
    id: String(id),
    prefix: plan.prefix,
    branches: plan.branches.map(branchOf),
    budget: plan.budget,
    apart: true,
    deadline: plan.deadline ?? Number.POSITIVE_INFINITY,
  };
}

function branchOf({ suffix, paths: options, steps, maxTokens, endTokens }: BranchPlan): BranchSpec {
  const constraint = () => (steps ? new PatternConstraint(steps) : null);
  return {
    suffix,
    ...(options ? { choice: { paths: options, after: constraint } } : {}),
    constraint: options ? null : constraint(),
    sampling: GREEDY,
    maxTokens,
    endTokens: new Set(endTokens),
    scored: true,
  };
}

type Outcome = JobResult | 'left' | 'late';

/** Runs the jobs together. Callers leave and deadlines pass after some steps, which are the engine's clock. */
async function run(engine: Engine, plans: readonly JobPlan[], clock: { steps: number }): Promise<Outcome[]> {
  clock.steps = 0;
  const answers = plans.map((plan, id) => {
    const leaving = new AbortController();
    if (plan.leavesAfter === 0) leaving.abort('left');
    const answer = engine.submit(jobOf(plan, id), leaving.signal).catch((error: unknown) => {
      if (error === 'left') return 'left' as const;
      if (error instanceof AssayError && error.code === 'timeout') return 'late' as const;
      throw error;
    });
    return { answer, leaving, leavesAfter: plan.leavesAfter };
  });
  for (let steps = 1; await engine.step(); steps++) {
    clock.steps = steps;
    for (const { leaving, leavesAfter } of answers) if (leavesAfter === steps) leaving.abort('left');
    engine.checkIntegrity();
  }
  return Promise.all(answers.map(({ answer }) => answer));
}

function compare(result: JobResult, expected: OracleBranch[], plan: JobPlan, apart: number): void {
  for (const [index, branch] of result.branches.entries()) {
    const wanted = expected[index]!;
    const { tokens: said, chosen, reason } = branch;
    expect({ option: branch.option?.index ?? null, tokens: said, chosen, reason }).toEqual({
      option: wanted.option,
      tokens: wanted.tokens,
      chosen: wanted.chosen,
      reason: wanted.reason,
    });
    for (const [at, logprob] of (wanted.logprobs ?? []).entries()) {
      expect(Math.abs(branch.option!.logprobs[at]! - logprob)).toBeLessThan(apart);
    }
    const scores = branch.choices!.map(({ logprob }) => logprob);
    expect(scores.length).toBe(wanted.choices.length);
    for (const [at, logprob] of wanted.choices.entries()) expect(Math.abs(scores[at]! - logprob)).toBeLessThan(apart);
    if (branch.option) expect(branch.option.probabilities.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 9);
    if (branch.constraint && plan.branches[index]!.steps) expect(branch.constraint.text()).toBe(said.join(' '));
  }
  expect(result.branches.reduce((sum, { chosen }) => sum + chosen, 0)).toBeLessThanOrEqual(plan.budget);
}

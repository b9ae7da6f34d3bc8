import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { atOnce } from '../../lib/at-once.ts';
import { type OptionChoice, taskGrammar } from '../../lib/tasks/task-grammar.ts';
import { ASSAY } from '../../runtime/contracts/assay.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { compileModel, type RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { planWriting } from '../../runtime/worker/task-job.ts';
import { answer, engineOf, openForBenchmark } from '../branches/workload.ts';
import { readTestSet, TEST_SETS, type Text } from '../quality/test-set.ts';
import type { Report } from '../report.ts';

/** Holds one scored question: for each option, the number of tokens and the total log-probability of its best path. */
interface Scored {
  lengths: number[];
  logprobs: number[];
  /** Index of the right option. */
  expected: number;
}

/**
 * Measures whether scoring prefers options of a certain length, on questions whose options differ in length. Compares
 * two scores of an option, the total log-probability and the mean per token: how often is the best option the right
 * one, and how often is it one of the shortest? Arguments: `--model=models/starter --precision=auto`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string', default: join(import.meta.dirname, '../../models/starter') },
      precision: { type: 'string', default: 'auto' },
    },
  });
  const target = mkdtempSync(join(tmpdir(), 'assay-options-'));
  try {
    const precision = values.precision as RequestedPrecision;
    await compileModel({ source: values.model, target, device: 'CPU', precision, maxPromptLen: 2048 });
    const model = await openForBenchmark(target);
    const text = await loadTextModel(values.model);
    const engine = engineOf(model);
    for (const set of TEST_SETS) {
      const scored: Scored[] = [];
      for (const one of await readTestSet(set)) {
        const tasks = decisions(one);
        if (tasks.length === 0) continue;
        const batch = {
          model: '',
          input: { context: one.context },
          media: [],
          temperature: 0,
          maxOutputTokens: 4096,
          tasks,
        };
        const { plan } = atOnce(planWriting({ contract: ASSAY, text }, batch, model.manifest));
        const { result } = await answer(engine, { ...plan, id: set, deadline: Number.POSITIVE_INFINITY });
        for (const [index, branch] of result.branches.entries()) {
          const { options, expected } = at(tasks, index);
          const { choice } = taskGrammar(at(tasks, index), text.vocabulary);
          const best = bestPaths(choice!, branch.option!.logprobs, options.length);
          scored.push({
            lengths: best.map(({ length }) => length),
            logprobs: best.map(({ logprob }) => logprob),
            expected: options.indexOf(expected),
          });
        }
      }
      tell(report, set, scored);
    }
    await model.close();
  } finally {
    rmSync(target, { recursive: true, force: true });
  }
}

/**
 * Returns the length in tokens and the log-probability of each option's most probable path. An option of a task with an
 * instruction has two paths: one ends the answer, the other lets a reason follow.
 */
function bestPaths({ paths, options }: OptionChoice, logprobs: ArrayLike<number>, count: number) {
  const best = Array.from({ length: count }, () => ({ length: 0, logprob: Number.NEGATIVE_INFINITY }));
  for (const [path, option] of options.entries()) {
    const logprob = at(logprobs, path);
    if (logprob > at(best, option).logprob) best[option] = { length: at(paths, path).length, logprob };
  }
  return best;
}

function decisions({ tasks }: Text) {
  return tasks.flatMap((task, index) =>
    task.type === 'decide' ? [{ ...withoutUndefined(task), name: `q${index}` }] : [],
  );
}

function withoutUndefined<T extends { instruction?: string | undefined }>(task: T) {
  const { instruction, ...rest } = task;
  return { ...rest, ...(instruction === undefined ? {} : { instruction }) };
}

function tell(report: Report, set: string, all: readonly Scored[]): void {
  const uneven = all.filter(({ lengths }) => new Set(lengths).size > 1);
  const ways: [string, (one: Scored) => number][] = [
    ['total log-probability', ({ logprobs }) => indexOfLargest(logprobs)],
    ['mean for a token', ({ logprobs, lengths }) => indexOfLargest(logprobs.map((total, i) => total / at(lengths, i)))],
    ['the expected answers', ({ expected }) => expected],
  ];
  report({
    system: 'questions',
    case: set,
    metric: 'with uneven options',
    value: uneven.length,
    unit: `of ${all.length}`,
  });
  for (const [system, choose] of ways) {
    const right = all.filter((one) => choose(one) === one.expected).length / all.length;
    const rightUneven = uneven.filter((one) => choose(one) === one.expected).length / uneven.length;
    const shortest =
      uneven.filter((one) => one.lengths[choose(one)] === Math.min(...one.lengths)).length / uneven.length;
    report({ system, case: set, metric: 'right', value: 100 * right, unit: '%' });
    report({ system, case: set, metric: 'right, uneven', value: 100 * rightUneven, unit: '%' });
    report({ system, case: set, metric: 'chose a shortest', value: 100 * shortest, unit: '%' });
  }
}

function indexOfLargest(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

import type { Task, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import { type TaskGrammar, taskGrammar } from '../../lib/decision/task-grammar.ts';
import type { BranchResult, BranchSpec, Job, JobResult, Sampling } from '../engine/job.ts';
import { checkLength, encodeTasks } from '../text/prompt.ts';
import type { TextModel } from '../text/text-model.ts';

/** What the engine needs, but for what the job is called and when it is given up. */
export type JobPlan = Omit<Job, 'id' | 'deadline'>;

export interface TaskPlan {
  /** The shared prefix once, and every task's own part. */
  promptTokens: number;
  plan: JobPlan;
  /** The answers in the order of the tasks, and the names of those that were cut. */
  answers(result: JobResult): { answers: TaskAnswer[]; cut: string[] };
}

/**
 * Turns a batch into a job: one branch for each task, in the order in which the budget serves them. Throws what is wrong with
 * the input (`unsupported_modality`, `input_too_long`, `unsupported_schema`).
 */
export function planTasks(text: TextModel, batch: TaskBatch, maxPromptLen: number): TaskPlan {
  const { prefix, branches } = encodeTasks(text, batch, maxPromptLen);
  const served = batch.tasks
    .map((task, index) => {
      const own = branches[index]!;
      const grammar = taskGrammar(task, text.vocabulary);
      // What every answer begins with is read along with the task. Looked at here, so that no further grammar is made in vain.
      checkLength(prefix.length + own.length + grammar.head.length, maxPromptLen);
      return { task, index, grammar, own };
    })
    .sort((a, b) => rank(a.task) - rank(b.task) || a.index - b.index);
  const specs = served.map(
    ({ own, grammar }): BranchSpec => ({
      suffix: [...own, ...grammar.head],
      ...choiceOf(grammar),
      sampling: taskSampling(batch.temperature),
      maxTokens: batch.maxOutputTokens,
      endTokens: text.vocabulary.end,
    }),
  );
  return {
    promptTokens: branches.reduce((sum, { length }) => sum + length, prefix.length),
    plan: { prefix, branches: specs, budget: batch.maxOutputTokens },
    answers(result) {
      const ordered = served
        .map(({ task, index, grammar }, i) => ({ index, name: task.name, grammar, branch: result.branches[i]! }))
        .sort((a, b) => a.index - b.index);
      return {
        answers: ordered.map(({ name, grammar, branch }) => ({ name, json: answer(grammar, branch) })),
        cut: ordered.filter(({ branch }) => branch.reason === 'length').map(({ name }) => name),
      };
    },
  };
}

/** The order in which the budget serves tasks (open-points.md, "Answers"). */
function rank(task: Task): number {
  if (task.type === 'extract') return 2;
  return task.options ? 0 : 1;
}

function choiceOf(grammar: TaskGrammar): Pick<BranchSpec, 'choice' | 'constraint'> {
  if (!grammar.choice) return { constraint: grammar.constraint() };
  const { paths, options } = grammar.choice;
  return { choice: { paths, options, after: (path) => grammar.constraint(path) }, constraint: null };
}

/** The same request gives the same answer, also above temperature 0. */
function taskSampling(temperature: number): Sampling {
  return { temperature, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null };
}

function answer(grammar: TaskGrammar, { option, constraint }: BranchResult): string {
  if (grammar.choice && !option) return grammar.unsettled;
  return constraint?.closed() ?? grammar.unsettled;
}

import { atOnce } from '../../lib/at-once.ts';
import type { TaskAnswer } from '../../lib/contract/batch.ts';
import { batchOfTasks } from '../../lib/tasks/batch.ts';
import { ASSAY } from '../../runtime/contracts/assay.ts';
import type { EngineModel } from '../../runtime/engine/model.ts';
import type { TextModel } from '../../runtime/text/text-model.ts';
import { planChat } from '../../runtime/worker/chat-job.ts';
import { planWriting } from '../../runtime/worker/task-job.ts';
import { engineOf } from '../branches/workload.ts';
import type { Case } from '../quality/test-set.ts';
import type { Asker } from './ways.ts';

/** Largest number of logit rows in a run with drafts; the server's value for 8-bit weights on CPUs with VNNI. */
const DRAFT_ROWS = 16;
/** Number of tokens that a chat writes before it is asked about. */
const WRITTEN = 64;

/**
 * Returns what asks a model's engine the tasks of test sets, and lets it chat about their texts. Answers are JSON text,
 * with their probabilities.
 *
 * @param apart false to compute the tasks of a request side by side
 * @param longest number of tokens after which an answer is cut
 */
export function askerOfTasks(
  text: TextModel,
  model: EngineModel,
  { apart, longest }: { apart: boolean; longest: number },
): Asker<string, Case> {
  return {
    engine: (kvBytes) => engineOf(model, { draftRows: DRAFT_ROWS }, { apart, ...(kvBytes ? { kvBytes } : {}) }),
    plan({ text: context, tasks }) {
      const named = tasks.map(({ expected: _, corrected: __, skill: ___, ...task }, i) => ({ ...task, name: `t${i}` }));
      // So many tokens that no task lacks some because of the others.
      const request = { model: '', context, temperature: 0, max_output_tokens: 65_536, tasks: named };
      const asked = batchOfTasks(request as Parameters<typeof batchOfTasks>[0]);
      const batch = { ...asked, probabilities: { calibrated: false } };
      const { plan, answers } = atOnce(planWriting({ contract: ASSAY, text }, batch, model.manifest));
      const branches = plan.branches.map((branch) =>
        branch.choice ? branch : { ...branch, maxTokens: Math.min(branch.maxTokens, longest) },
      );
      return {
        job: { ...plan, branches },
        answers: async (result) =>
          (await answers(async () => result)).answers.map(({ name: _, ...said }) => JSON.stringify(said)),
      };
    },
    chat(context) {
      const { plan } = atOnce(
        planChat(
          text,
          {
            messages: [{ role: 'user', parts: [{ type: 'text', text: `Rewrite this text.\n\n${context}` }] }],
            temperature: 1,
            seed: 1,
            stop: [],
            presencePenalty: 0,
            frequencyPenalty: 0,
            format: { type: 'text' },
          },
          model.manifest,
        ),
      );
      const { branches, ...job } = plan(() => {});
      return { ...job, branches: branches.map((branch) => ({ ...branch, maxTokens: WRITTEN })) };
    },
  };
}

/** Returns what an answer of `askerOfTasks` says, without its probabilities. */
export function saidIn(answer: string): string {
  const { json }: Pick<TaskAnswer, 'json'> = JSON.parse(answer);
  return json;
}

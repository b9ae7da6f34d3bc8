import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { atOnce } from '../../lib/at-once.ts';
import { batchOfTasks } from '../../lib/tasks/batch.ts';
import { ASSAY } from '../../runtime/contracts/assay.ts';
import type { Forward } from '../../runtime/engine/forward/forward.ts';
import { loadTextModel, type TextModel } from '../../runtime/text/text-model.ts';
import { planChat } from '../../runtime/worker/chat-job.ts';
import { compileModel, type RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { type JobPlan, planWriting } from '../../runtime/worker/task-job.ts';
import { answer, engineOf, openForBenchmark } from '../branches/workload.ts';
import { readChatSet } from '../quality/chat-set.ts';
import { readTestSet, TEST_SETS, type Text } from '../quality/test-set.ts';
import type { Report } from '../report.ts';

const CHAT_TOKENS = 64;

/** Holds the total cost and the answers of a set of requests. */
interface Cost {
  /** Processor time in milliseconds. */
  cpuMs: number;
  /** Number of runs of the model's graph. */
  runs: number;
  /** The answers of each request. */
  answers: string[][];
}

/**
 * Measures the processor time that drafts (speculative decoding) save, and counts the answers that they change. Each
 * extraction of both test sets, and each question of the chat set, runs without drafts and with them, in turn.
 * Arguments: `--model=models/starter --precision=int8 --rows=16 --most=1000`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: 'string', default: join(import.meta.dirname, '../../models/starter') },
      precision: { type: 'string', default: 'int8' },
      rows: { type: 'string', default: '16' },
      most: { type: 'string', default: '1000' },
    },
  });
  const target = mkdtempSync(join(tmpdir(), 'assay-drafts-'));
  const precision = values.precision as RequestedPrecision;
  await compileModel({ source: values.model, target, device: 'CPU', precision, maxPromptLen: 2048 });
  const model = await openForBenchmark(target);
  const text = await loadTextModel(values.model);
  const limits = model.manifest;
  const sets = [
    ...(await Promise.all(
      TEST_SETS.map(async (set) => {
        const plans = (await readTestSet(set)).flatMap((one) => extractions(text, one, limits));
        return { name: `extractions, ${set}`, plans };
      }),
    )),
    { name: 'chat', plans: await chats(text, limits) },
  ];
  const system = `${basename(values.model)}, ${values.precision}`;
  for (const { name, plans } of sets) {
    const asked = plans.slice(0, Number(values.most));
    const [without, drafted] = await compare(asked, [0, Number(values.rows)], model);
    const tell = (metric: string, value: number, unit: string) => report({ system, case: name, metric, value, unit });
    tell('speed (processor)', without.cpuMs / drafted.cpuMs, 'of no drafts');
    tell('runs of the model', drafted.runs / without.runs, 'of no drafts');
    const all = without.answers.flat();
    const differ = drafted.answers.flat().filter((one, i) => one !== all[i]).length;
    tell('answers that differ', differ, `of ${all.length}`);
  }
  await model.close();
  rmSync(target, { recursive: true, force: true });
}

/**
 * Runs each plan with both numbers of logit rows in a run with drafts, in turn, which exposes both to the same state of
 * the machine. Returns the total cost of each number.
 */
async function compare(
  plans: readonly (() => JobPlan)[],
  rows: readonly [number, number],
  model: Awaited<ReturnType<typeof openForBenchmark>>,
): Promise<[Cost, Cost]> {
  let runs = 0;
  const counting: Forward = {
    vocabSize: model.forward.vocabSize,
    slots: model.forward.slots,
    run(batch) {
      runs++;
      return model.forward.run(batch);
    },
  };
  const costs: [Cost, Cost] = [
    { cpuMs: 0, runs: 0, answers: [] },
    { cpuMs: 0, runs: 0, answers: [] },
  ];
  for (const [index, plan] of plans.entries()) {
    for (const which of index % 2 === 0 ? [0, 1] : [1, 0]) {
      const engine = engineOf({ ...model, forward: counting }, { draftRows: at(rows, which) });
      const before = runs;
      const { result, cpuMs } = await answer(engine, { ...plan(), id: 'draft', deadline: Number.POSITIVE_INFINITY });
      const cost = at(costs, which);
      cost.cpuMs += cpuMs;
      cost.runs += runs - before;
      cost.answers.push(result.branches.map(({ tokens, constraint }) => constraint?.closed() ?? tokens.join()));
    }
  }
  return costs;
}

interface ModelLimits {
  maxPromptLen: number;
  contextLength: number;
}

/** Returns a list with one function, which plans all extractions of a text; an empty list if the text has none. */
function extractions(text: TextModel, { context, tasks }: Text, limits: ModelLimits): (() => JobPlan)[] {
  const asked = tasks.flatMap(({ expected: _, corrected: __, skill: ___, ...task }, i) =>
    task.type === 'extract' ? [{ ...task, name: `t${i}` }] : [],
  );
  if (asked.length === 0) return [];
  const request = { model: '', context, temperature: 0, max_output_tokens: 4096, tasks: asked };
  const batch = batchOfTasks(request as Parameters<typeof batchOfTasks>[0]);
  return [() => atOnce(planWriting({ contract: ASSAY, text }, batch, limits)).plan];
}

async function chats(text: TextModel, limits: ModelLimits): Promise<(() => JobPlan)[]> {
  const talks = await readChatSet();
  const contents = talks.flatMap(({ context, questions }) => questions.map(({ ask }) => `${context}\n\n${ask}`));
  return contents.map((content) => () => {
    const chat = atOnce(
      planChat(
        text,
        {
          messages: [{ role: 'user', parts: [{ type: 'text', text: content }] }],
          stop: [],
          format: { type: 'text' },
          temperature: 0,
          presencePenalty: 0,
          frequencyPenalty: 0,
          maxTokens: CHAT_TOKENS,
        },
        limits,
      ),
    );
    return chat.plan(() => {});
  });
}

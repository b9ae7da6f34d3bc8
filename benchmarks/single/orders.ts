import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { atOnce } from '../../lib/at-once.ts';
import type { DecideTask, TaskBatch } from '../../lib/backend.ts';
import { DecisionsResponse } from '../../lib/schema/decisions-response.ts';
import { ASSAY } from '../../runtime/contracts/assay.ts';
import type { JobSpec } from '../../runtime/engine/job-spec.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { planWriting } from '../../runtime/worker/task-job.ts';
import { answer, best, engineOf, openForBenchmark } from '../branches/workload.ts';
import { KEY, type ServerProcess, startServer } from '../http/server.ts';
import { processorSeconds } from '../http/usage.ts';
import { type Case, readTestSet, TEST_SETS } from '../quality/test-set.ts';
import type { Report } from '../report.ts';

const HELP = `npm run bench -- orders [--texts=1000] [--rounds=13]

Asks the questions with options of both test sets in 1, 2 and 8 orders of their options, as given and with the options reversed by
the caller. Tells how often the answer is right, how often it flips when the caller reverses the options, and what an order costs.
--texts takes the first texts of each set alone. Then, --rounds times, 64 questions are asked of /v1/decisions and as decide tasks, about a
text of 1,000 tokens.`;

const STARTER = join(import.meta.dirname, '../../models/starter');
const MODEL = 'assay/starter';

/**
 * Numbers of orders that are compared. 1: the order as sent. 2: this order and its reverse. 8: as many rotations as
 * there are options, at most 8.
 */
const ORDERS = [1, 2, 8];

type Question = Extract<Case, { type: 'decide' }>;

/** Counts the results of all questions for one number of orders. */
interface Tally {
  asked: number;
  right: number;
  /** Number of questions whose answer changed when their options were sent in reverse. */
  flipped: number;
}

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      texts: { type: 'string', default: '1000' },
      rounds: { type: 'string', default: '13' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const server = await startServer();
  try {
    for (const name of TEST_SETS) {
      const texts = (await readTestSet(name)).slice(0, Number(values.texts));
      const tallies = new Map(ORDERS.map((orders) => [orders, { asked: 0, right: 0, flipped: 0 }]));
      for (const { context, tasks } of texts) await askText(server, context, tasks.filter(isQuestion), tallies);
      for (const [orders, tally] of tallies) tell(report, name, orders, tally);
    }
    await compareWithTasks(server, report, Number(values.rounds));
  } finally {
    await server.stop();
  }
  await measureBranches(report, Number(values.texts));
}

/**
 * Reports the engine's processor time for the branches of the texts, as a multiple of the time with one order, for each
 * number of orders. The prefixes of the texts are already cached. Each time is the lowest of three measurements.
 */
async function measureBranches(report: Report, texts: number): Promise<void> {
  const target = mkdtempSync(join(tmpdir(), 'assay-orders-'));
  try {
    await compileModel({ source: STARTER, target, device: 'CPU', precision: 'auto', maxPromptLen: 4096 });
    const model = await openForBenchmark(target);
    const text = await loadTextModel(STARTER);
    const engine = engineOf(model);
    for (const set of TEST_SETS) {
      const costs = new Map(ORDERS.map((orders) => [orders, 0]));
      for (const { context, tasks } of (await readTestSet(set)).slice(0, texts)) {
        const questions = tasks.filter(isQuestion);
        if (questions.length === 0) continue;
        const jobOf = (orders: number): JobSpec => {
          const { plan } = atOnce(
            planWriting({ contract: ASSAY, text }, batchOf(context, questions, orders), model.manifest),
          );
          return { ...plan, id: set, deadline: Number.POSITIVE_INFINITY };
        };
        await answer(engine, jobOf(1));
        for (const orders of ORDERS) {
          const { cpuMs } = await best(3, () => answer(engine, jobOf(orders)));
          costs.set(orders, costs.get(orders)! + cpuMs);
        }
      }
      for (const [orders, cost] of costs) {
        const value = cost / costs.get(1)!;
        report({ system: systemOf(orders), case: set, metric: 'processor time of the branches', value, unit: 'x' });
      }
    }
    await model.close();
  } finally {
    rmSync(target, { recursive: true });
  }
}

function batchOf(context: string, questions: readonly Question[], orders: number): TaskBatch {
  const tasks = questions.map(({ question, instruction, options }, i): DecideTask => {
    return { type: 'decide', name: `q${i}`, question, options, ...(instruction === undefined ? {} : { instruction }) };
  });
  const probabilities = { orders, calibrated: false };
  return { model: '', input: { context }, media: [], tasks, temperature: 0, maxOutputTokens: 1, probabilities };
}

/**
 * Reports the server's processor time for 64 questions of /v1/decisions about a new text of 1,000 tokens, as a multiple
 * of the time for the same questions as decide tasks of /v1/tasks. The two run in turn, and each goes first in every
 * other round.
 */
async function compareWithTasks(server: ServerProcess, report: Report, rounds: number): Promise<void> {
  const seconds = { '64 decide tasks': 0, '64 questions': 0 };
  const asked = Array.from({ length: 64 }, (_, i) => `Is number ${i} in the text?`);
  const options = ['yes', 'no', 'maybe'];
  const bodies = (seed: number) => {
    const context = Array.from({ length: 250 }, (_, i) => (seed * 7919 + i * 104_729) % 1000).join(' ');
    const tasks = asked.map((question, i) => ({ type: 'decide', name: `q${i}`, question, options }));
    const choices = options.map((value) => ({ value }));
    const questions = asked.map((instructions) => ({ type: 'choice', instructions, choices }));
    return [
      // The token limit is high enough for all answers.
      ['64 decide tasks', '/v1/tasks', { model: MODEL, context, tasks, max_output_tokens: 4096 }],
      ['64 questions', '/v1/decisions', { model: MODEL, input: context, questions }],
    ] as const;
  };
  for (let round = 0; round < rounds; round++) {
    // The two requests have different texts, so neither finds its prefix in the cache. The first round only warms up.
    const [tasks, questions] = [bodies(2 * round)[0], bodies(2 * round + 1)[1]];
    for (const [system, path, body] of round % 2 === 0 ? [tasks, questions] : [questions, tasks]) {
      const begin = used(server);
      await post(server, path, body);
      if (round > 0) seconds[system] += used(server) - begin;
    }
  }
  for (const system of ['64 decide tasks', '64 questions'] as const) {
    const value = seconds[system] / seconds['64 decide tasks'];
    report({ system, case: 'cold', metric: 'processor time over a text of 1,000 tokens', value, unit: 'x' });
  }
}

function used(server: ServerProcess): number {
  return server.pids().reduce((sum, pid) => sum + processorSeconds(pid), 0);
}

async function post({ url }: ServerProcess, path: string, body: object): Promise<string> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}${path} answers ${response.status}: ${text}`);
  return text;
}

function tell(report: Report, set: string, orders: number, tally: Tally): void {
  const system = systemOf(orders);
  const { asked, right, flipped } = tally;
  report({ system, case: set, metric: 'right', value: (100 * right) / asked, unit: `% of ${asked}` });
  report({ system, case: set, metric: 'flipped', value: (100 * flipped) / asked, unit: `% of ${asked}` });
}

function systemOf(orders: number): string {
  return orders === 1 ? '1 order' : `${orders} orders`;
}

function isQuestion(task: Case): task is Question {
  return task.type === 'decide';
}

async function askText(
  server: ServerProcess,
  context: string,
  questions: readonly Question[],
  tallies: ReadonlyMap<number, Tally>,
): Promise<void> {
  if (questions.length === 0) return;
  const reversed = questions.map((question) => ({ ...question, options: question.options.toReversed() }));
  for (const [orders, tally] of tallies) {
    const answers = await ask(server, context, questions, orders);
    const others = await ask(server, context, reversed, orders);
    tally.asked += questions.length;
    tally.right += questions.filter(({ expected }, i) => answers[i] === expected).length;
    tally.flipped += answers.filter((answer, i) => answer !== others[i]).length;
  }
}

/** Sends questions to /v1/decisions. Returns the chosen option of each question; null where the server abstained. */
async function ask(
  server: ServerProcess,
  input: string,
  questions: readonly Question[],
  orders: number,
): Promise<unknown[]> {
  const asked = questions.map(({ question, instruction, options }) => ({
    type: 'choice',
    instructions: instruction === undefined ? question : `${question}\n${instruction}`,
    choices: options.map((value) => ({ value })),
  }));
  const body = { model: MODEL, input, orders, calibrated: false, questions: asked };
  const { answers } = v.parse(DecisionsResponse, JSON.parse(await post(server, '/v1/decisions', body)));
  return answers.map((answer) => (answer.type === 'choice' ? answer.choice : null));
}

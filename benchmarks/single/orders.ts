import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { DecisionsResponse } from '../../lib/schema/decisions-response.ts';
import { KEY, type ServerProcess, startServer } from '../http/server.ts';
import { processorSeconds } from '../http/usage.ts';
import { type Case, readTestSet, TEST_SETS } from '../quality/test-set.ts';
import type { Report } from '../report.ts';

const HELP = `npm run bench -- orders [--texts=1000]

Asks the questions with options of both test sets in 1, 2 and 8 orders of their options, as given and with the options reversed by
the caller. Tells how often the answer is right, how often it flips when the caller reverses the options, and what an order costs.
--texts takes the first texts of each set alone.`;

/** As given; given and reversed; as many turns as there are options, at most 8. */
const ORDERS = [1, 2, 8];

type Question = Extract<Case, { type: 'decide' }>;

/** Counts the results of the questions in one number of orders. */
interface Tally {
  asked: number;
  right: number;
  flipped: number;
  /** Processor time of the server. */
  seconds: number;
}

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { texts: { type: 'string', default: '1000' }, help: { type: 'boolean', default: false } },
  });
  if (values.help) return console.log(HELP);
  const server = await startServer();
  try {
    for (const name of TEST_SETS) {
      const texts = (await readTestSet(name)).slice(0, Number(values.texts));
      const tallies = new Map(ORDERS.map((orders) => [orders, { asked: 0, right: 0, flipped: 0, seconds: 0 }]));
      for (const { context, tasks } of texts) await askText(server, context, tasks.filter(isQuestion), tallies);
      for (const [orders, tally] of tallies) tell(report, name, orders, tally, tallies.get(1)!);
    }
  } finally {
    await server.stop();
  }
}

function tell(report: Report, set: string, orders: number, tally: Tally, once: Tally): void {
  const system = orders === 1 ? '1 order' : `${orders} orders`;
  const { asked, right, flipped, seconds } = tally;
  report({ system, case: set, metric: 'right', value: (100 * right) / asked, unit: `% of ${asked}` });
  report({ system, case: set, metric: 'flipped', value: (100 * flipped) / asked, unit: `% of ${asked}` });
  report({ system, case: set, metric: 'processor time of the branches', value: seconds / once.seconds, unit: 'x' });
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
  // Reads the text, so that only the branches after it are timed below.
  await ask(server, context, questions.slice(0, 1), 1);
  const reversed = questions.map((question) => ({ ...question, options: question.options.toReversed() }));
  for (const [orders, tally] of tallies) {
    const begin = used(server);
    const answers = await ask(server, context, questions, orders);
    tally.seconds += used(server) - begin;
    const others = await ask(server, context, reversed, orders);
    tally.asked += questions.length;
    tally.right += questions.filter(({ expected }, i) => answers[i] === expected).length;
    tally.flipped += answers.filter((answer, i) => answer !== others[i]).length;
  }
}

function used(server: ServerProcess): number {
  return server.pids().reduce((sum, pid) => sum + processorSeconds(pid), 0);
}

/** Returns the option that each question is answered with. */
async function ask(
  { url }: ServerProcess,
  input: string,
  questions: readonly Question[],
  orders: number,
): Promise<unknown[]> {
  const response = await fetch(`${url}/v1/decisions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: JSON.stringify({
      model: 'assay/starter',
      input,
      orders,
      calibrated: false,
      questions: questions.map(({ question, instruction, options }) => ({
        type: 'choice',
        instructions: instruction === undefined ? question : `${question}\n${instruction}`,
        choices: options.map((value) => ({ value })),
      })),
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
  const { answers } = v.parse(DecisionsResponse, JSON.parse(text));
  return answers.map((answer) => (answer.type === 'choice' ? answer.choice : null));
}

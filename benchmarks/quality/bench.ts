import { parseArgs } from 'node:util';
import * as v from 'valibot';
import type { Report } from '../report.ts';
import { addAnswer, majorityBaseline, noScores, randomBaseline, type Scores } from './score.ts';
import { readTestSet, TEST_SETS, type Text } from './test-set.ts';

const HELP = `npm run bench -- quality --key sk-assay-... [--url http://127.0.0.1:8080] [--model assay/starter] [--skills]

Puts both test sets to a running server and tells how often it is right. --skills tells it for each kind of task, too.
The key may stand in ASSAY_API_KEY instead.`;

/** Room for a task's answer. The longest expected one takes about 60 tokens; a model that does not find its end is cut here. */
const TOKENS_EACH = 96;

/** How many requests wait for the server at once. */
const CLIENTS = 4;

/** Accuracy over HTTP: what a caller would get, the prompts, grammars and rounding of the server included. */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string', default: 'http://127.0.0.1:8080' },
      key: { type: 'string', default: process.env.ASSAY_API_KEY ?? '' },
      model: { type: 'string', default: 'assay/starter' },
      skills: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const server: Server = { url: values.url, key: values.key, model: values.model };
  for (const name of TEST_SETS) {
    const texts = await readTestSet(name);
    const { all, bySkill } = await ask(server, texts);
    const tell = (system: string, scores: Scores, what: string = name) => {
      for (const [metric, { right, total }] of [
        ['decide accuracy', scores.decide],
        ['fields exact', scores.fields],
      ] as const) {
        if (total > 0) report({ system, case: what, metric, value: (100 * right) / total, unit: `% of ${total}` });
      }
    };
    tell(server.model, all);
    tell('majority', majorityBaseline(texts));
    tell('random', randomBaseline(texts));
    if (values.skills)
      for (const [skill, scores] of [...bySkill].sort()) tell(server.model, scores, `${name} ${skill}`);
  }
}

interface Server {
  url: string;
  key: string;
  model: string;
}

async function ask(server: Server, texts: readonly Text[]) {
  const all = noScores();
  const bySkill = new Map<string, Scores>();
  const waiting = [...texts];
  const client = async () => {
    for (let text = waiting.shift(); text; text = waiting.shift()) {
      const answers = await runTasks(server, text);
      text.tasks.forEach((task, i) => {
        addAnswer(all, task, answers[i]);
        const skill = task.skill ?? task.type;
        const scores = bySkill.get(skill) ?? noScores();
        bySkill.set(skill, scores);
        addAnswer(scores, task, answers[i]);
      });
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return { all, bySkill };
}

const Response = v.object({ results: v.record(v.string(), v.record(v.string(), v.unknown())) });

/** The answers to a text's tasks, in order. Throws with the server's own words where it refuses. */
async function runTasks({ url, key, model }: Server, { context, tasks }: Text): Promise<unknown[]> {
  const body = {
    model,
    context,
    max_output_tokens: TOKENS_EACH * tasks.length,
    tasks: tasks.map(({ expected: _, skill: __, ...task }, i) => ({ ...task, name: `t${i}` })),
  };
  const response = await fetch(`${url}/v1/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
  const { results } = v.parse(Response, JSON.parse(text));
  return tasks.map((task, i) => (task.type === 'decide' ? results[`t${i}`]?.value : results[`t${i}`]));
}

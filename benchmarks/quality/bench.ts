import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { KEY, startServer } from '../http/server.ts';
import type { Report } from '../report.ts';
import { addAnswer, majorityBaseline, noScores, randomBaseline, type Scores } from './score.ts';
import { isCorrected, readTestSet, TEST_SETS, type Text } from './test-set.ts';

const HELP = `npm run bench -- quality [--skills] [--forms=auto,int8,int4,float]
npm run bench -- quality --url http://127.0.0.1:8080 --key sk-assay-... [--model assay/starter] [--skills]

Puts both test sets to a server and tells how often it is right. Without --url it starts the starter model in each form of the weights
(the --precision of assay serve), one after the other. --skills tells it for each kind of task, too.`;

const STARTER = 'assay/starter';

/** Room for a task's answer. The longest expected one takes about 60 tokens; a model that does not find its end is cut here. */
const TOKENS_EACH = 96;

/** `auto`, what a user gets, is one of the others. */
const FORMS = 'auto,int8,int4,float';

/** How many requests wait for the server at once. */
const CLIENTS = 4;

/** Accuracy over HTTP: what a caller would get, the prompts, grammars and rounding of the server included. */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string' },
      forms: { type: 'string', default: FORMS },
      key: { type: 'string', default: process.env.ASSAY_API_KEY ?? '' },
      model: { type: 'string', default: STARTER },
      skills: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const tell = (system: string, what: string, scores: Scores) => {
    for (const [metric, { right, total }] of [
      ['decide accuracy', scores.decide],
      ['fields exact', scores.fields],
    ] as const) {
      if (total > 0) report({ system, case: what, metric, value: (100 * right) / total, unit: `% of ${total}` });
    }
  };
  const measure = async (server: Server, system: string) => {
    for (const name of TEST_SETS) {
      const texts = await readTestSet(name);
      const { all, corrected, bySkill } = await ask(server, texts);
      tell(system, name, all);
      if (texts.some(isCorrected)) tell(system, `${name}, as corrected by readers`, corrected);
      if (values.skills) for (const [skill, scores] of [...bySkill].sort()) tell(system, `${name} ${skill}`, scores);
    }
  };
  if (values.url) await measure({ url: values.url, key: values.key, model: values.model }, values.model);
  else
    for (const form of values.forms.split(',')) {
      const server = await startServer(['--precision', form]);
      const system = form === 'auto' ? STARTER : `${STARTER}, ${form}`;
      await measure({ url: server.url, key: KEY, model: STARTER }, system).finally(() => server.stop());
    }
  for (const name of TEST_SETS) {
    const texts = await readTestSet(name);
    tell('majority', name, majorityBaseline(texts));
    tell('random', name, randomBaseline(texts));
  }
}

interface Server {
  url: string;
  key: string;
  model: string;
}

async function ask(server: Server, texts: readonly Text[]) {
  const all = noScores();
  const corrected = noScores();
  const bySkill = new Map<string, Scores>();
  const waiting = [...texts];
  const client = async () => {
    for (let text = waiting.shift(); text; text = waiting.shift()) {
      const answers = await runTasks(server, text);
      text.tasks.forEach((task, i) => {
        addAnswer(all, task, answers[i]);
        addAnswer(corrected, task, answers[i], task.corrected ?? task.expected);
        const skill = task.skill ?? task.type;
        const scores = bySkill.get(skill) ?? noScores();
        bySkill.set(skill, scores);
        addAnswer(scores, task, answers[i]);
      });
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return { all, corrected, bySkill };
}

const Response = v.object({ results: v.record(v.string(), v.record(v.string(), v.unknown())) });

/** The answers to a text's tasks, in order. Throws with the server's own words where it refuses. */
async function runTasks({ url, key, model }: Server, { context, tasks }: Text): Promise<unknown[]> {
  const body = {
    model,
    context,
    max_output_tokens: TOKENS_EACH * tasks.length,
    tasks: tasks.map(({ expected: _, corrected: __, skill: ___, ...task }, i) => ({ ...task, name: `t${i}` })),
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

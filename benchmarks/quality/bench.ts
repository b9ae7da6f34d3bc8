import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { at } from '../../lib/at.ts';
import { KEY, startServer } from '../http/server.ts';
import type { Report } from '../report.ts';
import { readChatSet, says, type Talk } from './chat-set.ts';
import { addAnswer, majorityBaseline, noScores, randomBaseline, type Score, type Scores } from './score.ts';
import { isCorrected, readTestSet, TEST_SETS, type Text } from './test-set.ts';

const HELP = `npm run bench -- quality [--skills] [--forms=auto,int8,int4,float] [--sets=natural,chat]
npm run bench -- quality --url http://127.0.0.1:8080 --key sk-assay-... [--model assay/starter] [--skills]

Puts both test sets to a server and tells how often it is right; then questions to its chat, without and with the wish to think. Without --url it starts the starter model in each precision
(the --precision of assay serve), one after the other. --skills tells it for each kind of task, too; --sets leaves out the others.`;

const STARTER = 'assay/starter';

/** Token limit for each task's answer. The longest expected answer takes about 60 tokens. */
const TOKENS_EACH = 96;

/** Number formats of the weights that are measured. `auto`, the default of the server, chooses one of the others. */
const FORMS = 'auto,int8,int4,float';

/** Token limit of a chat answer, which has a sentence and, before it, reasoning. */
const TOKENS_OF_CHAT = 160;

/** Sentence in a question that makes the starter model reason before it answers. Other models do not know it. */
const WISH = 'Think first.';

/** Number of requests that run at the same time. */
const CLIENTS = 4;

/**
 * Measures accuracy over HTTP. The figures are what a caller gets, with the effects of the server's prompts, grammars
 * and rounding.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string' },
      forms: { type: 'string', default: FORMS },
      key: { type: 'string', default: process.env.ASSAY_API_KEY ?? '' },
      model: { type: 'string', default: STARTER },
      skills: { type: 'boolean', default: false },
      sets: { type: 'string', default: [...TEST_SETS, 'chat'].join() },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const wanted = values.sets.split(',');
  const sets = TEST_SETS.filter((name) => wanted.includes(name));
  const tell = (system: string, what: string, scores: Scores) => {
    for (const [metric, { right, total }] of [
      ['decide accuracy', scores.decide],
      ['fields exact', scores.fields],
    ] as const) {
      if (total > 0) report({ system, case: what, metric, value: (100 * right) / total, unit: `% of ${total}` });
    }
  };
  const measure = async (server: Server, system: string) => {
    for (const name of sets) {
      const texts = await readTestSet(name);
      const { all, corrected, bySkill } = await ask(server, texts);
      tell(system, name, all);
      if (texts.some(isCorrected)) tell(system, `${name}, as corrected by readers`, corrected);
      if (values.skills) for (const [skill, scores] of [...bySkill].sort()) tell(system, `${name} ${skill}`, scores);
    }
    if (!wanted.includes('chat')) return;
    const talks = await readChatSet();
    for (const [metric, wish] of [
      ['answers right', ''],
      ['answers right and thought about', ` ${WISH}`],
    ] as const) {
      const { right, total } = await chat(server, talks, wish);
      report({ system, case: 'chat', metric, value: (100 * right) / total, unit: `% of ${total}` });
    }
  };
  if (values.url) await measure({ url: values.url, key: values.key, model: values.model }, values.model);
  else
    for (const form of values.forms.split(',')) {
      const server = await startServer(['--precision', form]);
      const system = form === 'auto' ? STARTER : `${STARTER}, ${form}`;
      await measure({ url: server.url, key: KEY, model: STARTER }, system).finally(() => server.stop());
    }
  for (const name of sets) {
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

/** Calls `put` for each item of a list. At most `CLIENTS` calls run at the same time. */
async function each<T>(list: readonly T[], put: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...list];
  const client = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await put(item);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

async function ask(server: Server, texts: readonly Text[]) {
  const all = noScores();
  const corrected = noScores();
  const bySkill = new Map<string, Scores>();
  await each(texts, async (text) => {
    const answers = await runTasks(server, text);
    text.tasks.forEach((task, i) => {
      addAnswer(all, task, answers[i]);
      addAnswer(corrected, task, answers[i], task.corrected ?? task.expected);
      const skill = task.skill ?? task.type;
      const scores = bySkill.get(skill) ?? noScores();
      bySkill.set(skill, scores);
      addAnswer(scores, task, answers[i]);
    });
  });
  return { all, corrected, bySkill };
}

/**
 * Counts the chat questions that are answered correctly. If `wish` asks the model to reason, only answers with
 * reasoning count as correct.
 */
async function chat(server: Server, talks: readonly Talk[], wish: string): Promise<Score> {
  const score: Score = { right: 0, total: 0 };
  const asked = talks.flatMap(({ context, questions }) => questions.map((question) => ({ context, ...question })));
  await each(asked, async ({ context, ask, words }) => {
    const content = `${context}\n\n${ask}${wish}`;
    const { choices } = await post(server, '/v1/chat/completions', Completion, {
      model: server.model,
      messages: [{ role: 'user', content }],
      temperature: 0,
      max_tokens: TOKENS_OF_CHAT,
    });
    const { content: answer, reasoning_content: thought } = at(choices, 0).message;
    score.right += says(answer ?? '', words) && (wish === '' || Boolean(thought)) ? 1 : 0;
    score.total += 1;
  });
  return score;
}

const Results = v.object({ results: v.record(v.string(), v.record(v.string(), v.unknown())) });
const Completion = v.object({
  choices: v.pipe(
    v.array(
      v.object({ message: v.object({ content: v.nullish(v.string()), reasoning_content: v.nullish(v.string()) }) }),
    ),
    v.minLength(1),
  ),
});

/** Sends the tasks of a text in one request. Returns the answers in the order of the tasks. */
async function runTasks(server: Server, { context, tasks }: Text): Promise<unknown[]> {
  const { results } = await post(server, '/v1/tasks', Results, {
    model: server.model,
    context,
    max_output_tokens: TOKENS_EACH * tasks.length,
    tasks: tasks.map(({ expected: _, corrected: __, skill: ___, ...task }, i) => ({ ...task, name: `t${i}` })),
  });
  return tasks.map((task, i) => (task.type === 'decide' ? results[`t${i}`]?.value : results[`t${i}`]));
}

/** Sends a request and returns the parsed answer. Throws an `Error` with the server's message if it is refused. */
async function post<S extends v.GenericSchema>({ url, key }: Server, path: string, schema: S, body: object) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
  return v.parse(schema, JSON.parse(text));
}

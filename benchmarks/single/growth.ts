import { parseArgs } from 'node:util';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';
import { prepareVocabulary, shapeConstraint } from '../../lib/tasks/task-grammar.ts';
import type { JobSpec } from '../../runtime/engine/job-spec.ts';
import { openModel } from '../../runtime/engine/model.ts';
import { largeVocabulary } from '../../tests/grammar/vocabularies.ts';
import { randomTokens, W } from '../branches/tokens.ts';
import { answer, chat, choices, engineOf, workload } from '../branches/workload.ts';
import { compiledRandomModel } from '../models/cache.ts';
import { median, type Report } from '../report.ts';
import { THREADS } from '../systems/start.ts';

const HELP = `npm run bench -- growth [--rounds=3] [--quick]

How the engine's time grows with tasks, context and options, and a grammar's with its schema.`;

const TASKS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/** Lengths of the context in tokens. The longest leaves space for an answer in the model's 8,192 tokens. */
const CONTEXTS = [128, 256, 512, 1024, 2048, 4096, 8160];
const OPTIONS = [2, 4, 8, 16, 32, 64, 128, 256];
/** Numbers of long options, and the tokens of each. */
const LONG_OPTIONS = [
  [2, 700],
  [8, 350],
  [64, 70],
] as const;
const MEMBERS = [1, 4, 16, 64, 256];

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
  const some = <T>(all: readonly T[]) => (values.quick ? all.slice(0, 3) : all);
  const shape = values.quick ? 'tiny' : 'qwen2.5-0.5b';
  const model = await openModel(await compiledRandomModel(shape, 'int8'), { threads: THREADS });
  let seed = 1;
  /**
   * Lowest measured time per token, in milliseconds. It is the speed of a perfect engine, whose time grows in
   * proportion to the tokens.
   */
  let perToken = Number.POSITIVE_INFINITY;
  const time = async (jobOf: (seed: number) => JobSpec): Promise<number[]> => {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) times.push((await answer(engineOf(model), jobOf(seed++))).ms);
    return times;
  };
  const say = (what: string, times: readonly number[], tokens: number) => {
    reportTimes('Assay, 8 bits', what, times, report);
    report({ system: 'perfect', case: what, metric: 'median', value: tokens * perToken, unit: 'ms' });
  };
  await time((from) => workload(2, from)); // warm up

  const contexts: [tokens: number, times: number[]][] = [];
  for (const tokens of some(CONTEXTS)) {
    const times = await time((from) => chat(tokens, 1, from));
    contexts.push([tokens, times]);
    perToken = Math.min(perToken, ...times.map((ms) => ms / tokens));
  }
  for (const [tokens, times] of contexts) say(`${tokens} tokens of context`, times, tokens);
  for (const tasks of some(TASKS)) {
    const tokens = W.context + tasks * (W.task + W.answer - 1);
    say(tasks === 1 ? '1 task' : `${tasks} tasks`, await time((from) => workload(tasks, from)), tokens);
  }
  for (const options of some(OPTIONS)) {
    const tokens = W.context + W.task + options;
    say(`${options} options`, await time((from) => optionsOf(options, from)), tokens);
  }
  for (const [count, length] of some(LONG_OPTIONS)) {
    const [context, tokens] = [64, values.quick ? 10 : length];
    const longOptions = (from: number) => longOptionsOf(count, tokens, context, from);
    say(`${count} options of ${tokens} tokens`, await time(longOptions), context + 2 * count * tokens);
  }
  await model.close();
  reportSchemas(some(MEMBERS), Math.max(3, rounds), report);
}

/** Reports the median of times in milliseconds and, for more than one round, their range. */
function reportTimes(system: string, what: string, times: readonly number[], report: Report): void {
  const say = (metric: string, value: number) => report({ system, case: what, metric, value, unit: 'ms' });
  say('median', median(times));
  if (times.length === 1) return;
  say('least', Math.min(...times));
  say('most', Math.max(...times));
}

/** Returns one question with `count` options of two tokens each, so each option occupies at least one cell. */
function optionsOf(count: number, seed: number): JobSpec {
  const job = choices({ questions: 1, seed, context: W.context, question: W.task });
  const paths = Array.from({ length: count }, (_, i) => randomTokens(2, seed * 1000 + i));
  return { ...job, branches: job.branches.map((branch) => ({ ...branch, choice: { paths } })) };
}

/** Returns a question that lists `count` options of `length` tokens each: each of their tokens is read twice. */
function longOptionsOf(count: number, length: number, context: number, seed: number): JobSpec {
  const job = choices({ questions: 1, seed, context, question: count * length });
  const paths = Array.from({ length: count }, (_, i) => randomTokens(length, seed * 1000 + i));
  return { ...job, branches: job.branches.map((branch) => ({ ...branch, choice: { paths } })) };
}

/**
 * Reports the time to compile a schema and compute its first mask over a vocabulary of 150,000 tokens. Reports no
 * `perfect` time, because it would be 0.
 */
function reportSchemas(sizes: readonly number[], rounds: number, report: Report): void {
  const vocabulary = largeVocabulary();
  prepareVocabulary(vocabulary);
  const mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
  for (const members of sizes) {
    const times: number[] = [];
    for (let round = -1; round < rounds; round++) {
      const properties = Object.fromEntries(
        Array.from({ length: members }, (_, i) => [
          `member_${round}_${i}`,
          i % 2 === 0 ? { type: 'string', maxLength: 40 } : { type: 'integer', minimum: 0 },
        ]),
      );
      const schema = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
      const began = performance.now();
      checkAnswerSchema({ schema, param: 'schema' });
      const constraint = shapeConstraint({ kind: 'schema', schema }, vocabulary);
      constraint.takeForced();
      constraint.mask(mask);
      // The first round lets the just-in-time compiler warm up.
      if (round >= 0) times.push(performance.now() - began);
    }
    const what = `${members} ${members === 1 ? 'member' : 'members'} of a schema`;
    reportTimes('Assay, grammar', what, times, report);
  }
}

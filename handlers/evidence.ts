import { at } from '../lib/at.ts';
import type { BatchAnswer, DecideTask, ExtractTask, TaskBatch } from '../lib/backend.ts';
import { AssayError } from '../lib/errors.ts';
import { entriesAsWritten } from '../lib/json/written-numbers.ts';
import type { Quote } from '../lib/questions/evidence.ts';
import type { QuestionAnswer } from '../lib/questions/question-answers.ts';
import type { EvidenceWish } from '../lib/schema/question-fields.ts';
import { indexOfHighest } from '../lib/tasks/logprobs.ts';

/** Maximum number of sentences of a text of which each is left out once. */
const MOST_UNITS = 32;
/** Maximum number of sentences and empty lines of it. */
const MOST_PARTS = 1_024;
/** Default of `top`. */
const MOST_QUOTES = 3;
/** Maximum number of tokens of one quote. */
const QUOTE_TOKENS = 96;
/** Largest limit of output tokens of a batch of quotes. */
const MOST_TOKENS = 4096;

/** Represents a question of a batch whose answer needs evidence. */
interface Asked {
  /** Index of its task. */
  index: number;
  task: DecideTask;
  answer: QuestionAnswer;
  wish: EvidenceWish;
}

/** Holds the questions of a request: a list, or by name. */
export type Questions = readonly unknown[] | { readonly [name: string]: unknown };

/** Returns how the evidence for each of a request's questions is found. */
export function wishesOf(questions: Questions): (EvidenceWish | false | undefined)[] {
  const all = Array.isArray(questions)
    ? questions
    : entriesAsWritten(questions as { readonly [name: string]: unknown }).map(([, one]) => one);
  return all.map((one: { evidence?: EvidenceWish | false }) => one.evidence);
}

/**
 * Returns, for each task of a batch, the wish of its question; null if no question has one.
 *
 * @param wishes one for each question
 */
export function wishesByTask(
  { tasks }: TaskBatch,
  wishes: readonly (EvidenceWish | false | undefined)[],
): (EvidenceWish | undefined)[] | null {
  if (!wishes.some(Boolean)) return null;
  let question = -1;
  return tasks.map((task) => {
    if (task.type === 'extract' || task.first !== false) question++;
    return wishes[question] || undefined;
  });
}

/**
 * Checks, before the model is asked anything, that sentences can be left out of the input if a wish needs that.
 *
 * @throws AssayError `unsupported_parameter` if the input is not one text, `invalid_value` if it has too many sentences
 */
export function checkEvidence({ input }: TaskBatch, wishes: readonly (EvidenceWish | undefined)[]): void {
  if (!wishes.some((wish) => wish && isAblation(wish))) return;
  if (!('context' in input) || input.state !== undefined) {
    const message =
      'evidence with the method ablation needs the input as one text. Send a string, or the method quote.';
    throw new AssayError('unsupported_parameter', message);
  }
  if (sentencesOf(input.context)) return;
  const message = `evidence with the method ablation reads the input once without each sentence: it has more than ${MOST_UNITS} sentences or ${MOST_PARTS} lines. Send the part that matters, or the method quote.`;
  throw new AssayError('invalid_value', message);
}

function isAblation(wish: EvidenceWish): boolean {
  return wish !== true && wish.method === 'ablation';
}

/**
 * Returns the answer with the parts of the input that decide its questions: what the model quotes when it is asked for
 * the decisive words, or the sentences without which the answer would be less probable.
 *
 * @param wishes wishes that `checkEvidence` accepts
 * @param run answers a batch
 * @throws AssayError any error of a batch
 */
export async function withEvidence(
  batch: TaskBatch,
  answer: BatchAnswer,
  wishes: readonly (EvidenceWish | undefined)[],
  run: (batch: TaskBatch) => Promise<BatchAnswer>,
): Promise<BatchAnswer> {
  const asked = batch.tasks.flatMap((task, index): Asked[] => {
    const wish = wishes[index];
    return wish && task.type === 'decide' ? [{ index, task, answer: at(answer.answers, index), wish }] : [];
  });
  const found = new Map<number, readonly Quote[]>();
  let { promptTokens, completionTokens } = answer.usage;
  const counted = async (one: TaskBatch) => {
    const given = await run(one);
    promptTokens += given.usage.promptTokens;
    completionTokens += given.usage.completionTokens;
    return given;
  };
  const quoting = asked.filter(({ wish }) => !isAblation(wish));
  if (quoting.length > 0) for (const [index, quotes] of await quoted(batch, quoting, counted)) found.set(index, quotes);
  const removing = asked.filter(({ wish }) => isAblation(wish));
  if (removing.length > 0)
    for (const [index, quotes] of await ablated(batch, removing, counted)) found.set(index, quotes);
  const answers = answer.answers.map((one, i): QuestionAnswer => {
    const quotes = found.get(i);
    return quotes ? { ...one, quotes } : one;
  });
  return { ...answer, answers, usage: { ...answer.usage, promptTokens, completionTokens } };
}

/** Asks for the words that decide each question, in the same text and thus with the same cached prefix. */
async function quoted(
  batch: TaskBatch,
  asked: readonly Asked[],
  run: (batch: TaskBatch) => Promise<BatchAnswer>,
): Promise<[number, Quote[]][]> {
  const tasks = asked.map(({ task, answer, index }): ExtractTask => {
    const value = chosen(task, answer);
    return {
      type: 'extract',
      name: `e${index}`,
      instruction: `The words of the text that decide this: ${task.question} ${value}`,
      shape: { kind: 'keys', keys: ['words'] },
      present: {
        kind: 'schema',
        schema: {
          type: 'object',
          properties: { words: { type: 'string', minLength: 1 } },
          required: ['words'],
          additionalProperties: false,
        },
      },
      verbatim: true,
    };
  });
  const maxOutputTokens = Math.min(MOST_TOKENS, QUOTE_TOKENS * tasks.length);
  const { answers } = await run({ ...batch, tasks, maxOutputTokens, probabilities: { calibrated: true } });
  return answers.map(({ json, fields = [] }, i) => {
    const { words } = JSON.parse(json) as { words?: string };
    const [field] = fields;
    // Words that the limit of tokens has cut have no probability.
    const quotes = words && field ? [{ text: words, probability: field.probability }] : [];
    return [at(asked, i).index, quotes];
  });
}

/** Leaves one sentence out at a time, and measures how much less probable the answer gets. */
async function ablated(
  batch: TaskBatch,
  asked: readonly Asked[],
  run: (batch: TaskBatch) => Promise<BatchAnswer>,
): Promise<[number, Quote[]][]> {
  const { input } = batch;
  // `checkEvidence` has refused any other input.
  const whole = 'context' in input ? input.context : '';
  const sentences = sentencesOf(whole) ?? [];
  const tasks = asked.map(({ task }) => task);
  const weights = asked.map((): Quote[] => []);
  for (const { text, start, end } of sentences.length > 1 ? sentences : []) {
    const context = whole.slice(0, start) + whole.slice(end);
    const { answers } = await run({ ...batch, input: { context }, tasks });
    for (const [i, { answer }] of asked.entries()) {
      const without = at(answers, i);
      // Probabilities of two models are not comparable.
      if (without.answeredBy !== answer.answeredBy) continue;
      const all = answer.optionLogprobs ?? [];
      const best = indexOfHighest(all);
      const weight = (all[best] ?? 0) - (without.optionLogprobs?.[best] ?? 0);
      if (weight > 0) at(weights, i).push({ text: text.trim(), start, end: start + text.trimEnd().length, weight });
    }
  }
  return asked.map(({ index, wish }, i) => {
    const top = wish === true ? MOST_QUOTES : (wish.top ?? MOST_QUOTES);
    const ranked = at(weights, i).sort((a, b) => (b.weight ?? 0) - (a.weight ?? 0));
    return [index, ranked.slice(0, top)];
  });
}

/** Returns the answer to a question as text. */
function chosen({ options = [] }: DecideTask, { json, optionLogprobs }: QuestionAnswer): string {
  if (optionLogprobs) return options[indexOfHighest(optionLogprobs)] ?? '';
  return String((JSON.parse(json) as { value?: unknown }).value ?? '');
}

interface Sentence {
  text: string;
  start: number;
  end: number;
}

/** Returns the sentences of a text, or null if it has too many, of which no more are looked at: it may be 20 MB. */
function sentencesOf(text: string): Sentence[] | null {
  const found: Sentence[] = [];
  let parts = 0;
  for (const { segment, index } of new Intl.Segmenter('en', { granularity: 'sentence' }).segment(text)) {
    if (segment.trim() !== '') found.push({ text: segment, start: index, end: index + segment.length });
    if (found.length > MOST_UNITS || ++parts > MOST_PARTS) return null;
  }
  return found;
}

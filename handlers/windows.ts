import { at } from '../lib/at.ts';
import type { BatchAnswer, Task, TaskAnswer, TaskBatch } from '../lib/backend.ts';
import { AssayError, isAssayError } from '../lib/errors.ts';
import { taskText } from '../lib/prompt/tasks.ts';
import { indexIn } from '../lib/questions/evidence.ts';
import { mapInOrder } from '../lib/rows/map-in-order.ts';
import type { Windows } from '../lib/schema/windows.ts';
import { cutText, type Window } from '../lib/windows/cut-text.ts';
import { type AnsweredWindow, type MergeRules, mergeAnswers } from '../lib/windows/merge-answers.ts';

/** Maximum number of windows of one text. */
const MOST_WINDOWS = 64;
/** Windows that are answered at once. */
const INFLIGHT = 4;
/** Default and maximum of the tokens that windows share with the one before. */
const MOST_OVERLAP = 256;
/** Characters of a token: few, so that a window fits; many, so that a text that is refused is certainly too long. */
const FEW_CHARACTERS = 3;
const MANY_CHARACTERS = 6;
/** Tokens that the prompt has beside the text and the questions. */
const TEMPLATE_TOKENS = 160;
/** Tokens of the fixed instructions before a text. */
const FIXED_TOKENS = 64;
/** Share of the room that a window fills, because tokens are not spread evenly over a text. */
const FILLED = 0.92;
/** Characters of a window below which it is not cut further: then the questions are too long. */
const LEAST_CHARACTERS = 64;

/**
 * Answers a batch about a text that the model may not read whole: cuts the text into windows, asks about each, and
 * merges the answers. How many characters a token has is measured at the first window. A text that fits is read whole.
 *
 * @param run answers a batch
 * @param mostTokens tokens that the model reads at once
 * @throws AssayError `invalid_value` if the batch has no text of its own, `input_too_long` if the text needs more than
 *   `MOST_WINDOWS` windows; any error of a window
 */
export async function answerInWindows(
  batch: TaskBatch,
  windows: Windows,
  rules: MergeRules,
  { run, mostTokens }: { run(batch: TaskBatch): Promise<BatchAnswer>; mostTokens: number },
): Promise<BatchAnswer> {
  if (!('context' in batch.input) || batch.input.state !== undefined) {
    throw refused('windows needs the input as one text; send it as a string, or omit windows.', 'windows');
  }
  checkCombine(batch, rules);
  const text = batch.input.context;
  // The probabilities say which window to believe.
  const whole: TaskBatch = { ...batch, probabilities: batch.probabilities ?? { calibrated: true } };
  const asked = withNotes(whole, rules);
  const size = windows.size ?? roomOf(batch, mostTokens);
  const overlap = windows.overlap ?? (rules.combine === 'noisy_or' ? 0 : Math.min(MOST_OVERLAP, Math.floor(size / 4)));
  const least = Math.ceil(text.length / (size * MANY_CHARACTERS));
  if (least > MOST_WINDOWS) throw tooMany(`at least ${least}`, size);
  let read = 0;
  const whenItFits = async (window: Window): Promise<AnsweredWindow | null> => {
    const context = text.slice(window.start, window.end);
    // The parts of windows that did not fit count, too.
    if (read++ === MOST_WINDOWS) throw tooMany(`more than ${MOST_WINDOWS}`, size);
    try {
      return { ...window, answer: await run({ ...asked, input: { context } }) };
    } catch (error) {
      if (!isAssayError(error, 'input_too_long') || context.length <= LEAST_CHARACTERS) throw error;
      read--;
      return null;
    }
  };
  const answer = async (window: Window): Promise<AnsweredWindow[]> => {
    const one = await whenItFits(window);
    if (one) return [one];
    // Its tokens are shorter than those before: two windows in its place.
    const half = Math.ceil((window.end - window.start) / 2);
    const context = text.slice(window.start, window.end);
    const parts = cutText(context, half + Math.ceil(half / 4), Math.min(Math.floor(half / 4), overlap));
    const moved = parts.map(({ start, end }) => ({ start: window.start + start, end: window.start + end }));
    const answered: AnsweredWindow[] = [];
    for (const part of moved) answered.push(...(await answer(part)));
    return answered;
  };
  const mayFit = text.length <= size * (windows.size === undefined ? MANY_CHARACTERS : FEW_CHARACTERS);
  const first = await whenFits(mayFit, () => run(whole));
  if (first) return mergeAnswers(batch, text, [{ start: 0, end: text.length, answer: first }], rules);

  // One window is read before the others are counted, so that a text with too many costs little.
  let one: AnsweredWindow | null = null;
  for (let most = size * FEW_CHARACTERS; !one; most = Math.ceil(most / 2))
    one = await whenItFits(at(cutText(text.slice(0, most + 1), most, 0), 0));
  const answered = [one];
  const tokens = one.answer.usage.stateTokens ?? one.answer.usage.promptTokens;
  // The prompt has tokens of its own, too: about this many, which matters for small windows.
  const from = one.end;
  const characters = from / Math.max(tokens / 2, tokens - FIXED_TOKENS);
  const rest = Math.max(0, from - Math.floor(overlap * characters));
  const length = Math.max(LEAST_CHARACTERS, Math.floor(size * characters * FILLED));
  const others =
    from === text.length
      ? []
      : cutText(text.slice(rest), length, Math.floor(overlap * characters)).map(({ start, end }) => ({
          start: rest + start,
          end: rest + end,
        }));
  const count = answered.length + others.length;
  if (count > MOST_WINDOWS) throw tooMany(String(count), size);
  for await (const some of mapInOrder(others, { inflight: INFLIGHT, window: MOST_WINDOWS }, answer))
    answered.push(...some);
  let merged = mergeAnswers(asked, text, answered, rules);
  const span = { index: 0, count, start: 0, end: indexIn({ source: '', text }, text.length, rules.unit) };
  for (const [i, task] of batch.tasks.entries()) {
    if (asked.tasks[i] === task) continue;
    const context = notesOf(answered.map(({ answer }) => at(answer.answers, i)));
    // Notes that are not much shorter than the text would be cut into windows again and again.
    const again = context.length <= text.length / 2 ? rules : { ...rules, combine: undefined };
    const about = { ...whole, tasks: [task], input: { context } };
    const answer = await answerInWindows(about, {}, again, { run, mostTokens });
    merged = withAnswer(merged, i, { ...at(answer.answers, 0), window: span }, answer);
  }
  return merged;
}

/** Maximum number of characters of the notes about a window, and about as many as tokens. */
const NOTE_CHARACTERS = 300;
const NOTE_TOKENS = 96;
/** Text in the place of notes if no window has any. */
const NO_NOTES = 'Nothing in the text bears on the question.';

/** Returns the batch with a request for notes in the place of each choice and score, if `combine` is `reduce`. */
function withNotes(batch: TaskBatch, { combine, absentIsLast }: MergeRules): TaskBatch {
  if (combine !== 'reduce') return batch;
  const tasks = batch.tasks.map((task): Task => {
    if (task.type !== 'decide' || !task.options || task.kind === 'predicate' || absentIsLast(task)) return task;
    const { name, question, language } = task;
    const notes = { type: ['string', 'null'], maxLength: NOTE_CHARACTERS };
    const schema = { type: 'object', properties: { notes }, required: ['notes'], additionalProperties: false };
    const instruction = `Note what in the text bears on this question, in few words; null if nothing does. ${question}`;
    const own = language === undefined ? {} : { language };
    return { type: 'extract', name, instruction, shape: { kind: 'schema', schema }, ...own };
  });
  const changed = tasks.filter((task, i) => task !== batch.tasks[i]).length;
  return { ...batch, tasks, maxOutputTokens: batch.maxOutputTokens + changed * NOTE_TOKENS };
}

/** Joins the notes about the windows, in the order of the text. */
function notesOf(answers: readonly TaskAnswer[]): string {
  const notes = answers.map(({ json }): unknown => JSON.parse(json).notes);
  const said = notes.filter((note) => typeof note === 'string' && note.trim() !== '');
  return said.length > 0 ? said.join('\n') : NO_NOTES;
}

/** Puts an answer in the place of notes, and counts what it used. Notes that were cut do not count as cut answers. */
function withAnswer(merged: BatchAnswer, index: number, answer: TaskAnswer, about: BatchAnswer): BatchAnswer {
  const { cut, usage, cachedTokens } = merged;
  const names = [...(cut?.names ?? []).filter((name) => name !== answer.name), ...(about.cut?.names ?? [])];
  const sum = (a = 0, b = 0) => a + b;
  return {
    model: merged.model,
    answers: merged.answers.with(index, answer),
    finishReason: names.length > 0 ? 'length' : 'stop',
    ...(names.length > 0 ? { cut: { names, more: 0 } } : {}),
    usage: {
      promptTokens: usage.promptTokens + about.usage.promptTokens,
      stateTokens: sum(usage.stateTokens, about.usage.stateTokens),
      mediaTokens: sum(usage.mediaTokens, about.usage.mediaTokens),
      completionTokens: usage.completionTokens + about.usage.completionTokens,
    },
    ...(cachedTokens === undefined ? {} : { cachedTokens: cachedTokens + (about.cachedTokens ?? 0) }),
  };
}

/** Returns the result of `ask`, or null if it is not asked or the input is too long. */
async function whenFits(mayFit: boolean, ask: () => Promise<BatchAnswer>): Promise<BatchAnswer | null> {
  if (!mayFit) return null;
  try {
    return await ask();
  } catch (error) {
    if (isAssayError(error, 'input_too_long')) return null;
    throw error;
  }
}

/** Estimates how many tokens of text the model reads beside the longest task. */
function roomOf({ tasks, language }: TaskBatch, mostTokens: number): number {
  const longest = Math.max(...tasks.map((task) => taskText(task, task.language ?? language).length));
  return Math.max(LEAST_CHARACTERS, mostTokens - Math.ceil(longest / FEW_CHARACTERS) - TEMPLATE_TOKENS);
}

/** Kinds of questions that each way to combine has a meaning for. */
const COMBINED = {
  any: ['predicate'],
  all: ['predicate'],
  noisy_or: ['predicate'],
  best: ['choice', 'score'],
  mean: ['choice'],
  max: ['score'],
  reduce: ['choice', 'score'],
} as const;

/** Throws `invalid_value` if `combine` has no meaning for any of the questions. */
function checkCombine({ tasks }: TaskBatch, { combine, absentIsLast }: MergeRules): void {
  if (combine === undefined) return;
  const kinds: readonly string[] = COMBINED[combine];
  const asked = tasks.some(
    (task) => task.type === 'decide' && task.options && !absentIsLast(task) && kinds.includes(task.kind ?? 'choice'),
  );
  if (!asked)
    throw refused(`windows.combine ${combine} has no effect on these questions; remove it.`, 'windows.combine');
}

function refused(message: string, param: string): AssayError {
  return new AssayError('invalid_value', message, { param });
}

function tooMany(count: string, size: number): AssayError {
  return new AssayError(
    'input_too_long',
    `The text needs ${count} windows of about ${size} tokens, and one request may have ${MOST_WINDOWS}. Send less text, or larger windows.`,
  );
}

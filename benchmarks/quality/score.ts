import type { Case, Text } from './test-set.ts';

/**
 * Holds the number of right answers and of all answers. A decide task counts once, an extraction once for each field.
 */
export interface Score {
  right: number;
  total: number;
}

export interface Scores {
  decide: Score;
  fields: Score;
}

/** Represents an answer of the decision service: the option of a decide task, or the object of an extraction. */
export type Answer = unknown;

export function noScores(): Scores {
  return { decide: { right: 0, total: 0 }, fields: { right: 0, total: 0 } };
}

/**
 * Compares an answer with the expected one and adds the result to the scores. A field is right if its value is
 * identical. If a list or object has another type than expected, all of its fields are wrong.
 */
export function addAnswer(scores: Scores, task: Case, answer: Answer, expected: Answer = task.expected): void {
  if (task.type === 'decide') add(scores.decide, answer === expected ? 1 : 0);
  else for (const { path, value } of leaves(expected)) add(scores.fields, at(answer, path) === value ? 1 : 0);
}

/**
 * Returns the mean score of guessing. A guess for a decide task is any of its options; a guess for a field is any word
 * of the context, or null. All guesses have the same probability.
 */
export function randomBaseline(texts: readonly Text[]): Scores {
  const scores = noScores();
  for (const { context, tasks } of texts) {
    const guesses: unknown[] = [...context.split(/\s+/u).filter((word) => word !== ''), null];
    for (const task of tasks) {
      if (task.type === 'decide') add(scores.decide, 1 / task.options.length);
      else {
        for (const { value } of leaves(task.expected)) {
          const equal = guesses.filter((guess) => guess === value || guess === String(value)).length;
          add(scores.fields, equal / guesses.length);
        }
      }
    }
  }
  return scores;
}

/**
 * Returns the score of always giving the most common answer. For a decide task, this is the option that is right most
 * often in all other tasks of the set, or a random one of several such options. For every field, it is the one value
 * that is right most often.
 */
export function majorityBaseline(texts: readonly Text[]): Scores {
  const tasks = texts.flatMap((text) => text.tasks);
  const labels = countsOf(tasks.flatMap((task) => (task.type === 'decide' ? [task.expected] : [])));
  const values = tasks.flatMap((task) =>
    task.type === 'extract' ? leaves(task.expected).map(({ value }) => value) : [],
  );
  const [commonest] = [...countsOf(values)].sort(([, one], [, other]) => other - one)[0] ?? [null];
  const scores = noScores();
  for (const task of tasks) {
    if (task.type === 'decide') {
      const elsewhere = (option: string) => (labels.get(option) ?? 0) - (option === task.expected ? 1 : 0);
      const most = Math.max(...task.options.map(elsewhere));
      const guesses = task.options.filter((option) => elsewhere(option) === most);
      add(scores.decide, guesses.includes(task.expected) ? 1 / guesses.length : 0);
    } else for (const { value } of leaves(task.expected)) add(scores.fields, value === commonest ? 1 : 0);
  }
  return scores;
}

function add(score: Score, right: number): void {
  score.right += right;
  score.total += 1;
}

function countsOf<T>(values: readonly T[]): Map<T, number> {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

interface Leaf {
  path: readonly (string | number)[];
  value: unknown;
}

/** Returns the fields of an expected answer: all values in it that are neither objects nor lists. */
function leaves(value: unknown, path: readonly (string | number)[] = []): Leaf[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => leaves(item, [...path, i]));
  if (value !== null && typeof value === 'object') {
    return Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]));
  }
  return [{ path, value }];
}

function at(value: unknown, path: readonly (string | number)[]): unknown {
  let here = value;
  for (const key of path) {
    if (here === null || typeof here !== 'object' || !Object.hasOwn(here, key)) return undefined;
    here = (here as Record<string | number, unknown>)[key];
  }
  return here;
}

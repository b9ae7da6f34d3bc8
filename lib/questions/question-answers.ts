import { at } from '../at.ts';
import type { BatchAnswer, DecideTask, Task, TaskAnswer, TaskBatch } from '../backend.ts';
import { indexOfHighest, normalised } from '../tasks/logprobs.ts';
import type { Quote } from './evidence.ts';

/*
 * Questions that are more than one task of plain options: those with `unsure`, whose last option says that the input
 * does not tell, and those of many labels, each of which is a task of its own.
 */

/** Option for what the input does not tell, of `unsure` questions and of `boolean` and `enum` fields. */
const NOT_STATED = 'not stated';

/** Holds the answer to one question of a request. */
export interface QuestionAnswer extends TaskAnswer {
  /** Probability that the input does not tell, of a question with `unsure`; the other options' sum to 1 without it. */
  unsure?: number;
  /** Parts of the input that decide the answer, of a question with `evidence`. */
  quotes?: readonly Quote[];
  /** Probability of each label, of a question of many labels. */
  labels?: readonly number[];
}

/** Holds a batch's answer with one entry for each question. */
export interface QuestionAnswers extends Omit<BatchAnswer, 'answers'> {
  answers: readonly QuestionAnswer[];
}

/** Returns a text for "not stated" that is none of the options. */
export function notStatedBeside(options: readonly string[]): string {
  let text = NOT_STATED;
  while (options.includes(text)) text = `(${text})`;
  return text;
}

/** Adds the option that the input does not tell, if `unsure` is true or a description of that option. */
export function withUnsure(task: DecideTask, unsure: boolean | string | null | undefined): DecideTask {
  if (!unsure || !task.options) return task;
  const { options, descriptions, sent } = task;
  const described = descriptions ?? options.map(() => null);
  const description = unsure === true ? null : unsure;
  const { criteria: _, ...asked } = sent ?? {};
  return {
    ...task,
    kind: 'choice',
    options: [...options, notStatedBeside(options)],
    ...(descriptions || description ? { descriptions: [...described, description] } : {}),
    // The criteria as they were sent lack the option.
    ...(sent ? { sent: { ...asked, id: sent.id } } : {}),
    unsure: true,
  };
}

/** Returns the tasks of a question of many labels: whether each label applies. */
export function labelTasks(
  question: string,
  labels: readonly (readonly [label: string, description: string | null | undefined])[],
  id?: string,
  name = '',
): DecideTask[] {
  return labels.map(([label, description], i) => ({
    type: 'decide',
    kind: 'predicate',
    // No name that a client may choose has a space.
    name: i === 0 ? name : `${name} ${i}`,
    question: `${question}\nDoes this apply: ${label}${description ? ` (${description})` : ''}?`,
    options: ['yes', 'no'],
    ...(id === undefined ? {} : { id }),
    ...(i === 0 ? { first: true } : { first: false }),
  }));
}

/** Combines the answers to the tasks of a batch to those of its questions. */
export function questionAnswers({ tasks }: TaskBatch, answer: BatchAnswer): QuestionAnswers {
  const answers: QuestionAnswer[] = [];
  for (const [i, task] of tasks.entries()) {
    const own = at(answer.answers, i);
    if (task.type === 'extract' || task.first === undefined) answers.push(withoutUnsure(task, own));
    else {
      const [yes = 0] = own.optionLogprobs ?? [];
      const before = task.first ? undefined : answers.pop();
      // What holds for one label does not hold for all of them.
      const { optionLogprobs: _, labelMass: __, ...whole }: QuestionAnswer = before ?? own;
      answers.push({ ...whole, labels: [...(whole.labels ?? []), Math.exp(yes)] });
    }
  }
  return { ...answer, answers };
}

/** Splits off the option that the input does not tell. If it is the likeliest, the answer is an abstention. */
function withoutUnsure(task: Task, answer: TaskAnswer): QuestionAnswer {
  const { optionLogprobs } = answer;
  if (task.type === 'extract' || !task.unsure || !task.options || !optionLogprobs) return answer;
  const stated = optionLogprobs.slice(0, -1);
  const rest = normalised(stated);
  const abstained = indexOfHighest(optionLogprobs) === stated.length || answer.abstained;
  const value = at(task.options, indexOfHighest(stated));
  return {
    ...answer,
    json: JSON.stringify({ value, ...(abstained ? { abstained } : {}) }),
    optionLogprobs: rest,
    unsure: Math.exp(at(optionLogprobs, stated.length)),
    ...(abstained ? { abstained } : {}),
  };
}

/** Sets which labels of a question of many labels are selected. */
export interface Selection {
  threshold?: number;
  min?: number;
  max?: number;
}

/** Default of `threshold`. */
export const LABEL_THRESHOLD = 0.5;

/**
 * Selects the labels with at least the threshold's probability; if those are fewer than `min`, the most probable ones,
 * too, and if more than `max`, only the most probable ones. Returns their indices in the order of the labels, and the
 * probability that exactly these apply if the labels are independent.
 */
export function selectedLabels(
  probabilities: readonly number[],
  { threshold = LABEL_THRESHOLD, min = 0, max = probabilities.length }: Selection,
): { selected: number[]; confidence: number } {
  const ranked = probabilities.map((p, i) => ({ p, i })).sort((a, b) => b.p - a.p || a.i - b.i);
  const reaching = ranked.filter(({ p }) => p >= threshold).length;
  const count = Math.min(max, Math.max(min, reaching));
  const selected = ranked.slice(0, count).map(({ i }) => i);
  const chosen = new Set(selected);
  const confidence = probabilities.reduce((product, p, i) => product * (chosen.has(i) ? p : 1 - p), 1);
  return { selected: selected.sort((a, b) => a - b), confidence };
}

/** Returns whether an answer may be automated: thresholds are certified for texts that were read whole. */
export function certifiedOf({ automated = null, window }: TaskAnswer): boolean | null {
  return window && window.count > 1 ? null : automated;
}

/** Returns the members that an answer from windows has besides its own: none for a text that was read whole. */
export function windowMembers({ window, candidates }: TaskAnswer): object {
  if (!window) return {};
  const others = candidates?.map(({ path, json, probability, absent, window, evidence }) => ({
    // The only member of a field's own answer is the field.
    path,
    value: JSON.parse(json),
    confidence: probability,
    p_null: absent,
    window,
    ...(evidence ? { span: [evidence.start, evidence.end] } : {}),
  }));
  return {
    x_window: window,
    ...(others ? { x_candidates: others } : {}),
    ...(window.count > 1 ? { x_calibrated: false } : {}),
  };
}

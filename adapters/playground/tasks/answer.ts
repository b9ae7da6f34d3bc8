import type * as v from 'valibot';
import type { DecisionsResponse } from '../../../lib/schema/decisions-response.ts';
import type { ExtractionsResponse } from '../../../lib/schema/extractions-response.ts';
import type { RunTasksResponse } from '../../../lib/schema/task-response.ts';
import { items, type TaskDraft, typedField } from './task.ts';

/** Holds one displayed row of an answer: a value, with its probability and evidence if they are known. */
export interface AnswerRow {
  label: string;
  /** The value as text; null if the model found none in the context. */
  value: string | null;
  probability?: number;
  /** Range of the value in the context, in UTF-16 code units. */
  evidence?: { start: number; end: number };
}

/** Holds the displayed answer to one task. */
export interface Answer {
  name: string;
  /**
   * For a decide task: a row with the answer, and one with its reason. For a multi task: a row for each option that
   * applies. For an extract task: a row for each field.
   */
  rows: AnswerRow[];
  /** Probability of each option, in the order sent; empty if there are no options or no probabilities. */
  options: { label: string; probability: number }[];
  /** Says why there is no answer: the text does not say, or no option was probable enough (flag `--abstain-below`). */
  abstained?: 'unsure' | 'improbable';
  /** Probability that the text does not say, of a task with `unsure`. */
  unsure?: number;
}

/** Holds all answers of a request and the numbers of tokens. */
export interface Answers {
  answers: Answer[];
  /** True if answers were cut because the token budget ran out. */
  cut: boolean;
  promptTokens: number;
  chosenTokens: number;
}

/**
 * Converts the response of `POST /v1/tasks` to the displayed answers. These have the order of the tasks and not of the
 * response's members, because JavaScript moves members with names such as `10`.
 */
export function readTasks(tasks: readonly TaskDraft[], { results, choices, usage }: RunTasksResponse): Answers {
  const answers = tasks.map(({ name, type }): Answer => {
    // A server of another version may send other members, so missing ones are expected.
    const result = (results[name] ?? {}) as Record<string, unknown>;
    if (type === 'extract') {
      const rows = Object.entries(result).map(([label, value]) => ({ label, value: shown(value) }));
      return { name, rows, options: [] };
    }
    if (type === 'multi') {
      const { values = [], probabilities = {} } = result as {
        values?: string[];
        probabilities?: Record<string, number>;
      };
      return chosen(name, values, Object.entries(probabilities));
    }
    const unsure = result.x_p_unsure as number | undefined;
    const more = unsure === undefined ? {} : { unsure, ...(result.abstained ? { abstained: 'unsure' as const } : {}) };
    const reason = result.reason === undefined ? [] : [{ label: 'reason', value: shown(result.reason) }];
    return { name, rows: [{ label: 'answer', value: shown(result.value) }, ...reason], options: [], ...more };
  });
  const cut = choices[0]?.finish_reason === 'length';
  return { answers, cut, promptTokens: usage.prompt_tokens, chosenTokens: usage.completion_tokens };
}

/** Converts the response of `POST /v1/decisions` to the displayed answers. `tasks` are the tasks that were sent. */
export function readDecisions(tasks: readonly TaskDraft[], response: DecisionsResponse): Answers {
  const { usage } = response;
  const answers = response.answers.map((answer, index): Answer => {
    const name = tasks[index]?.name ?? '';
    const unsure = 'x_p_unsure' in answer && answer.x_p_unsure !== undefined ? { unsure: answer.x_p_unsure } : {};
    if (answer.type === 'choice' || answer.type === 'multi') {
      const all = answer.probabilities.map(({ value, probability }) => [String(value), probability] as const);
      const selected = answer.type === 'multi' ? answer.selected : [answer.choice];
      return { ...chosen(name, selected.map(String), all), ...unsure };
    }
    if (answer.type === 'refusal') {
      const labels = items(tasks[index]?.list ?? '');
      const all = (answer.x_probabilities ?? []).map((probability, i) => [labels[i] ?? '', probability] as const);
      const abstained = answer.x_probabilities ? 'unsure' : 'improbable';
      return { ...chosen(name, [], all), ...unsure, abstained };
    }
    // The playground asks no questions of the other types.
    if (answer.type !== 'extract') return { name, rows: [], options: [] };
    const rows = answer.fields.map(({ path, value, probability, evidence }) => ({
      label: memberName(path),
      value: shown(value),
      probability,
      ...(evidence ? { evidence } : {}),
    }));
    return { name, rows, options: [] };
  });
  const cut = response.answers.some((answer) => answer.type === 'extract' && !answer.complete);
  return { answers, cut, promptTokens: usage.input_tokens, chosenTokens: usage.output_tokens };
}

/** Converts the response of `POST /v1/extractions` to the displayed answers. `tasks` are the tasks that were sent. */
export function readExtractions(
  tasks: readonly TaskDraft[],
  { answers, usage }: v.InferOutput<typeof ExtractionsResponse>,
): Answers {
  const shownAnswers = tasks.map(({ type, name, list }): Answer => {
    if (type === 'fields') {
      return { name, rows: items(list).flatMap((line) => fieldRows(typedField(line).name, answers)), options: [] };
    }
    const answer = answers[name];
    if (answer?.type === 'multi') return chosen(name, answer.selected, Object.entries(answer.probabilities));
    if (answer?.type === 'choice') {
      const unsure = answer.x_p_unsure === undefined ? {} : { unsure: answer.x_p_unsure };
      const abstained = answer.x_abstained
        ? ({ abstained: 'x_p_unsure' in answer ? 'unsure' : 'improbable' } as const)
        : {};
      return { ...chosen(name, [answer.choice], Object.entries(answer.probabilities)), ...unsure, ...abstained };
    }
    if (answer?.type === 'extract') {
      const rows = answer.fields.map(({ path, value, probability }) => ({
        label: memberName(path),
        value: shown(value),
        probability,
      }));
      return { name, rows, options: [] };
    }
    return { name, rows: fieldRows(name, answers), options: [] };
  });
  const cut = Object.values(answers).some((answer) => 'x_cut' in answer && answer.x_cut === true);
  return { answers: shownAnswers, cut, promptTokens: usage.input_tokens, chosenTokens: usage.output_tokens };
}

/** Returns the answer that consists of some of the options. */
function chosen(name: string, values: readonly string[], options: readonly (readonly [string, number])[]): Answer {
  return {
    name,
    rows: values.map((value) => ({ label: 'answer', value })),
    options: options.map(([label, probability]) => ({ label, probability })),
  };
}

/** Returns the rows of a typed field: one, or one for each item of a list. */
function fieldRows(label: string, answers: v.InferOutput<typeof ExtractionsResponse>['answers']): AnswerRow[] {
  // A server of another version may answer with other members.
  const answer = Object(answers[label]) as {
    value?: unknown;
    p_null?: number;
    confidence?: number;
    confidences?: number[];
    span?: [number, number];
    spans?: [number, number][];
  };
  const place = (span: [number, number] | undefined) => span && { evidence: { start: span[0], end: span[1] } };
  if (Array.isArray(answer.value) && answer.value.length > 0) {
    return answer.value.map((item, i) => ({
      label,
      value: shown(item),
      ...(answer.confidences?.[i] === undefined ? {} : { probability: answer.confidences[i] }),
      ...place(answer.spans?.[i]),
    }));
  }
  const { value = null, p_null: absent = 0, confidence = 1 } = answer;
  // A list that is empty is as sure as the whole list.
  if (Array.isArray(value)) return [{ label, value: null, probability: confidence }];
  if (value === null) return [{ label, value: null, probability: absent }];
  return [{ label, value: shown(value), probability: (1 - absent) * confidence, ...place(answer.span) }];
}

/** Returns a JSON Pointer (RFC 6901) without the leading slash and with its escapes resolved: the name of a member. */
const memberName = (pointer: string) => pointer.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');

function shown(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

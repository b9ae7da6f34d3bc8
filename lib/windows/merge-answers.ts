import { at } from '../at.ts';
import type { BatchAnswer, DecideTask, FieldProbability, Task, TaskAnswer, TaskBatch } from '../backend.ts';
import { pointerStep } from '../json/leaves.ts';
import { joinMembers, splitItems, splitMembers } from '../json/members.ts';
import { indexIn, type SpanUnit } from '../questions/evidence.ts';
import { StateSpans } from '../questions/extractions.ts';
import type { Combine } from '../schema/windows.ts';
import { indexOfHighest, normalised } from '../tasks/logprobs.ts';
import type { Window } from './cut-text.ts';

/* Merges the answers to the windows of a text into answers about the whole text. */

/** Holds a window of a text with the answer to its batch. */
export interface AnsweredWindow extends Window {
  answer: BatchAnswer;
}

/** Says how the answers of one task are combined. */
export interface MergeRules {
  /** The way to combine a question with options, if it can be so; absent: the default of its kind. */
  combine?: Combine | undefined;
  /** Unit of the places that the answers state. */
  unit: SpanUnit;
  /** Tells whether the last option of a task means that the text does not contain the value. */
  absentIsLast(task: Task): boolean;
}

/** Probability of absence up to which an answer counts as a candidate. */
const MOST_ABSENT = 0.5;
/** Maximum number of conflicting values of an answer. */
const MOST_CANDIDATES = 8;

/** Merges the answers to the windows of a text, in the order of the windows. A single one stays as it is. */
export function mergeAnswers(
  batch: TaskBatch,
  text: string,
  windows: readonly AnsweredWindow[],
  rules: MergeRules,
): BatchAnswer {
  const first = at(windows, 0).answer;
  const spans = windows.map(({ start, end }) => new StateSpans(text.slice(start, end), 'utf16'));
  const source = { source: '', text };
  const inUnit = ({ start, end }: Window): Window => ({
    start: indexIn(source, start, rules.unit),
    end: indexIn(source, end, rules.unit),
  });
  const answers = batch.tasks.map((task, i) => {
    const given = windows.map(({ answer }) => at(answer.answers, i));
    const own = task.type === 'decide' ? decided(task, given, rules) : extracted(task, given, windows, spans);
    const { candidates } = own.answer;
    const others = candidates?.map((one) => ({ ...one, ...(one.evidence ? { evidence: inUnit(one.evidence) } : {}) }));
    return {
      ...own.answer,
      ...(others ? { candidates: others } : {}),
      window: { index: own.index, count: windows.length, ...inUnit(at(windows, own.index)) },
    };
  });
  const sum = (count: (answer: BatchAnswer) => number | undefined) =>
    windows.reduce((total, { answer }) => total + (count(answer) ?? 0), 0);
  const names = [...new Set(windows.flatMap(({ answer }) => answer.cut?.names ?? []))];
  const reasons = windows.map(({ answer }) => answer.finishReason);
  return {
    model: first.model,
    answers,
    finishReason: reasons.find((reason) => reason !== 'stop') ?? 'stop',
    ...(names.length > 0 ? { cut: { names, more: 0 } } : {}),
    usage: {
      promptTokens: sum(({ usage }) => usage.promptTokens),
      stateTokens: sum(({ usage }) => usage.stateTokens ?? usage.promptTokens),
      mediaTokens: sum(({ usage }) => usage.mediaTokens),
      completionTokens: sum(({ usage }) => usage.completionTokens),
    },
    ...(batch.probabilities ? { cachedTokens: sum(({ cachedTokens }) => cachedTokens) } : {}),
  };
}

interface Merged {
  answer: TaskAnswer;
  /** Index of the window that the answer comes from. */
  index: number;
}

function decided(task: DecideTask, given: readonly TaskAnswer[], rules: MergeRules): Merged {
  const chosen = (index: number): Merged => ({ answer: at(given, index), index });
  const logprobs = given.map(({ optionLogprobs = [] }) => optionLogprobs);
  if (!task.options) {
    // An answer in the model's own words: the one that it is surest of.
    return chosen(
      indexOfHighest(given.map(({ fields = [] }) => fields.reduce((p, { probability }) => p * probability, 1))),
    );
  }
  if (rules.absentIsLast(task) && task.kind !== 'score') {
    return chosen(indexOfHighest(logprobs.map((options) => -(options.at(-1) ?? 0))));
  }
  const surest = () => chosen(indexOfHighest(logprobs.map((options) => Math.max(...options))));
  const merged = (optionLogprobs: number[]): Merged => {
    const { index, answer } = surest();
    const value = task.options?.[indexOfHighest(optionLogprobs)];
    return { index, answer: { ...answer, json: JSON.stringify({ value }), optionLogprobs } };
  };
  if (task.kind === 'predicate') {
    const yes = logprobs.map(([logprob = 0]) => logprob);
    if (rules.combine === 'all') return chosen(indexOfHighest(yes.map((logprob) => -logprob)));
    const likeliest = indexOfHighest(yes);
    if (rules.combine !== 'noisy_or') return chosen(likeliest);
    const none = logprobs.reduce((sum, [, logprob = 0]) => sum + logprob, 0);
    return { ...merged([Math.log(Math.max(-Math.expm1(none), Number.MIN_VALUE)), none]), index: likeliest };
  }
  if (task.kind === 'score' && rules.combine === 'max' && !rules.absentIsLast(task)) {
    const level = (options: readonly number[]) => options.reduce((sum, logprob, i) => sum + i * Math.exp(logprob), 0);
    return chosen(indexOfHighest(logprobs.map(level)));
  }
  if (task.kind !== 'score' && rules.combine === 'mean') {
    return merged(
      normalised(
        task.options.map((_, i) => logprobs.reduce((sum, options) => sum + at(options, i), 0) / logprobs.length),
      ),
    );
  }
  return surest();
}

/** Holds a value that a window has at some path of the answer. */
interface Found {
  /** Index of the window. */
  index: number;
  json: string;
  /** Path of the value in the answer of its window. */
  path: string;
  answer: TaskAnswer;
}

type Candidate = NonNullable<TaskAnswer['candidates']>[number];

/** Collects what the values of a merged answer consist of. */
interface Collected {
  fields: FieldProbability[];
  candidates: Candidate[];
  /** Windows from which values were taken. */
  used: Set<number>;
}

function extracted(
  task: Task,
  given: readonly TaskAnswer[],
  windows: readonly Window[],
  spans: readonly StateSpans[],
): Merged {
  const collected: Collected = { fields: [], candidates: [], used: new Set() };
  const places = new Places(windows, spans);
  const found = given.map((answer, index): Found => ({ index, json: answer.json, path: '', answer }));
  const json = merge(found, '', collected, places);
  const used = [...collected.used];
  const absent = given.map((answer) => answer.absent ?? 0);
  const index = used[0] ?? absent.indexOf(Math.min(...absent));
  const certainties = (used.length > 0 ? used : [index]).flatMap((one) => at(given, one).certainty ?? []);
  return {
    index,
    answer: {
      name: task.name,
      json,
      fields: collected.fields,
      ...(given[0]?.absent === undefined ? {} : { absent: Math.min(...absent) }),
      ...(certainties.length > 0 ? { certainty: Math.min(...certainties) } : {}),
      ...(collected.candidates.length > 0 ? { candidates: collected.candidates } : {}),
    },
  };
}

/** Finds the places of values in the whole text, within the windows that have them. */
class Places {
  readonly #windows: readonly Window[];
  readonly #spans: readonly StateSpans[];

  constructor(windows: readonly Window[], spans: readonly StateSpans[]) {
    this.#windows = windows;
    this.#spans = spans;
  }

  /** Returns the place of a value, which the model itself may have named; null if its window does not contain it. */
  of({ index, json, path, answer }: Found): { start: number; end: number } | null {
    const { start } = at(this.#windows, index);
    const evidence = answer.fields?.find((field) => field.path === path)?.evidence;
    const value: unknown = JSON.parse(json);
    const spans = at(this.#spans, index);
    const span = evidence
      ? [evidence.start, evidence.end]
      : typeof value === 'string'
        ? spans.ofText(value)
        : typeof value === 'number'
          ? spans.ofNumber(value)
          : null;
    return span ? { start: start + (span[0] ?? 0), end: start + (span[1] ?? 0) } : null;
  }
}

/** Returns the merged value as JSON text, and adds what it consists of to `into`. `path` is its path there. */
function merge(all: readonly Found[], path: string, into: Collected, places: Places): string {
  const some = all.filter(({ json }) => json !== 'null');
  if (some.some(({ json }) => json.startsWith('{'))) return mergeObjects(some, path, into, places);
  if (some.some(({ json }) => json.startsWith('['))) return mergeLists(some, path, into, places);
  return mergeScalars(some.length > 0 ? some : all, path, into, places);
}

function mergeObjects(all: readonly Found[], path: string, into: Collected, places: Places): string {
  const members = all
    .filter(({ json }) => json.startsWith('{'))
    .map((one) => ({ one, members: splitMembers(one.json) }));
  const names = new Set(members.flatMap(({ members }) => [...members.keys()]));
  return joinMembers(
    [...names].map((name) => {
      const inner = members.flatMap(({ one, members }): Found[] => {
        const json = members.get(name);
        return json === undefined ? [] : [{ ...one, json, path: `${one.path}/${pointerStep(name)}` }];
      });
      return [name, merge(inner, `${path}/${pointerStep(name)}`, into, places)];
    }),
  );
}

/** Returns the union of lists, in the order of the text: of items in one place, the longest, then the likeliest. */
function mergeLists(all: readonly Found[], path: string, into: Collected, places: Places): string {
  const items = all
    .filter(({ json }) => json.startsWith('['))
    .flatMap((one) => splitItems(one.json).map((json, i): Found => ({ ...one, json, path: `${one.path}/${i}` })))
    .map((one) => ({ one, place: places.of(one), probability: leastProbability(one) }));
  const longest = (place: { start: number; end: number } | null) => (place ? place.end - place.start : 0);
  const ranked = items.toSorted((a, b) => longest(b.place) - longest(a.place) || b.probability - a.probability);
  const kept: typeof items = [];
  for (const item of ranked) {
    const { place } = item;
    const repeats = kept.some((other) =>
      place && other.place
        ? place.start < other.place.end && other.place.start < place.end
        : place === null && folded(other.one.json) === folded(item.one.json),
    );
    if (!repeats) kept.push(item);
  }
  // Items without a place keep the order of their windows, behind the others.
  const ordered = items.filter((item) => kept.includes(item));
  ordered.sort((a, b) => (a.place?.start ?? Number.MAX_SAFE_INTEGER) - (b.place?.start ?? Number.MAX_SAFE_INTEGER));
  for (const [i, { one, place }] of ordered.entries()) {
    into.used.add(one.index);
    take(one, `${path}/${i}`, into, place);
  }
  return `[${ordered.map(({ one }) => one.json).join(',')}]`;
}

/** Adds the probabilities of a value and of all values within it, with their new paths. */
function take(
  { answer, path }: Found,
  to: string,
  into: Collected,
  place: { start: number; end: number } | null,
): void {
  for (const { evidence: _, ...field } of answer.fields ?? []) {
    if (field.path === path) into.fields.push({ ...field, path: to, ...(place ? { evidence: place } : {}) });
    else if (field.path.startsWith(`${path}/`))
      into.fields.push({ ...field, path: to + field.path.slice(path.length) });
  }
}

function leastProbability({ answer, path }: Found): number {
  const own = (answer.fields ?? []).filter((field) => field.path === path || field.path.startsWith(`${path}/`));
  return Math.min(1, ...own.map(({ probability }) => probability));
}

/** Returns the value with the most weight: each place of it counts once, by its probability and that of a value. */
function mergeScalars(all: readonly Found[], path: string, into: Collected, places: Places): string {
  const rated = all.map((one) => {
    const probability = leastProbability(one);
    const absent = one.answer.absent ?? 0;
    return { one, absent, probability, weight: (1 - absent) * probability, place: places.of(one) };
  });
  const stated = rated.filter(({ absent }) => absent <= MOST_ABSENT);
  const least = Math.min(...rated.map(({ absent }) => absent));
  const values = Map.groupBy(stated.length > 0 ? stated : rated.filter(({ absent }) => absent === least), ({ one }) =>
    folded(one.json),
  );
  const groups = [...values.values()].map((group) => {
    const byPlace = new Map<string, number>();
    for (const { place, weight, one } of group) {
      const key = place ? `${place.start}-${place.end}` : `window ${one.index}`;
      byPlace.set(key, Math.max(byPlace.get(key) ?? 0, weight));
    }
    const [best] = group.toSorted((a, b) => b.weight - a.weight);
    return { best, weight: [...byPlace.values()].reduce((sum, weight) => sum + weight, 0) };
  });
  groups.sort((a, b) => b.weight - a.weight);
  const [winner, ...others] = groups;
  if (!winner?.best) return 'null';
  const { one, place } = winner.best;
  if (one.json !== 'null') into.used.add(one.index);
  take(one, path, into, place);
  for (const { best } of others.slice(0, MOST_CANDIDATES)) {
    if (!best || best.one.json === 'null') continue;
    const { absent, probability, place, one } = best;
    into.candidates.push({
      path,
      json: one.json,
      probability,
      absent,
      window: one.index,
      ...(place ? { evidence: place } : {}),
    });
  }
  return one.json;
}

/** Returns a value in a form in which equal values are equal, however they are capitalised and spaced. */
function folded(json: string): string {
  const value: unknown = JSON.parse(json);
  return typeof value === 'string'
    ? value.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim()
    : JSON.stringify(value);
}

import * as v from 'valibot';
import { at } from '../at.ts';
import { messageOf } from '../errors.ts';
import { DecisionQuestion, type DecisionQuestion as Question } from '../schema/decisions-request.ts';
import {
  type DecisionAnswer,
  DecisionsResponse,
  type ExtractAnswer,
  type MultiAnswer,
} from '../schema/decisions-response.ts';
import { ExtractionField } from '../schema/extractions-request.ts';
import { SystemOneQuestion } from '../schema/systemone-request.ts';
import { logprobsOf } from '../tasks/logprobs.ts';
import { object, record } from '../validation/objects.ts';
import { validate } from '../validation/validate.ts';
import { type CalibratedKind, rightOrWrong } from './calibration.ts';
import type { Labelled } from './fit.ts';
import { groupsOf } from './thresholds.ts';

/** Holds one labelled question or field: a part of a request to `path`, and the right answer. */
export type Label = {
  /** Text or JSON value that it is about. */
  input: unknown;
  /** Name by which evaluations and thresholds know the question. */
  name: string;
  /** The right answer, as `readLabels` describes it. */
  label: unknown;
} & (
  | { path: '/v1/decisions'; question: Question }
  | { path: '/v1/systemone'; question: Exclude<SystemOneQuestion, { type: 'extract' | 'multi' }> }
  | { path: '/v1/extractions'; question: ValueField }
);

/** Represents a field whose value the model writes, so that it also decides whether there is one. */
type ValueField = Extract<ExtractionField, { type: (typeof VALUE_TYPES)[number] }>;
const VALUE_TYPES = ['text', 'number', 'date', 'time', 'datetime', 'duration'] as const;

/** Holds the model's answer to a labelled question, with its options and its kind of answer. */
export interface Sample extends Labelled {
  kind: CalibratedKind;
  name: string;
  options: readonly string[];
  /** Groups of thresholds that the question belongs to (`groupsOf`); none: its answers are not automated. */
  groups: readonly string[];
}

const Line = object({ input: v.string(), label: v.unknown() });
const ManyLine = object({
  state: v.union([v.string(), v.looseObject({}), v.array(v.unknown())]),
  questions: record(v.string(), SystemOneQuestion),
});

/**
 * Reads a line of a labels file: a JSON object with `input`, the members of a question of /v1/decisions, and `label`;
 * with `input`, the members of a value field of /v1/extractions, and `label`; or with `state`, `questions` of
 * /v1/systemone and `gold`, their labels by name, which may be objects with `label`.
 *
 * The label is true or false for a predicate, the value of a choice for a choice, the label of a level (in System One
 * also its index) for a score, a list of values for a multi question, an object for an extraction, the value or null
 * for a field, and with `unsure` null for what the input does not tell.
 *
 * @throws Error whose message says what is wrong with the line; an `AssayError` if the question is invalid
 */
export function readLabels(line: string): Label[] {
  const value = parsed(line);
  if (typeof value === 'object' && value !== null && 'questions' in value) return namedLabels(value);
  const { input, label } = validate(Line, value);
  // The cast is safe: the value has passed a schema of an object.
  const { input: _input, label: _label, ...rest } = value as Record<string, unknown>;
  if (VALUE_TYPES.includes(rest.type as ValueField['type'])) {
    const { name = 'value', ...field } = rest;
    // The cast is safe: the type is one of these.
    const question = validate(ExtractionField, field) as ValueField;
    return [{ path: '/v1/extractions', input, question, name: String(name), label }];
  }
  const question = validate(DecisionQuestion, rest);
  check(question, label);
  const { name, instructions } = question;
  const words = typeof instructions === 'string' ? instructions : question.type;
  return [{ path: '/v1/decisions', input, question, name: name ?? words, label }];
}

function namedLabels(value: object): Label[] {
  const { state, questions } = validate(ManyLine, value);
  const gold = Object(value).gold ?? Object(value).labels;
  return Object.entries(questions).map(([name, question]): Label => {
    if (question.type === 'extract' || question.type === 'multi') {
      throw new Error(`questions.${name}: label questions of the type ${question.type} in lines of /v1/decisions.`);
    }
    const given = Object(gold)[name];
    const label = typeof given === 'object' && given !== null && 'label' in given ? given.label : given;
    if (indexOfNamed(question, label) === -1) throw new Error(`gold.${name} must be ${ANSWERS[question.type]}.`);
    return { path: '/v1/systemone', input: state, question, name, label };
  });
}

function check(question: Question, label: unknown): void {
  switch (question.type) {
    case 'extract':
      if (typeof label !== 'object' || label === null) throw new Error('The label of an extraction must be an object.');
      return;
    case 'multi': {
      const known = question.choices.map(({ value }): unknown => value);
      if (Array.isArray(label) && label.every((one) => known.includes(one))) return;
      throw new Error('The label of a multi question must be a list of its choices.');
    }
    default:
      if (indexOfLabel(question, label) === -1) throw new Error(`label must be ${ANSWERS[question.type]}.`);
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new Error(`This is not JSON: ${messageOf(cause)}.`, { cause });
  }
}

/** Names the labels that a type of question allows, as the end of a sentence. */
const ANSWERS = {
  predicate: 'true or false',
  noul: 'true or false',
  choice: 'the value of one of the choices',
  score: 'the label of one of the levels',
};

/** Represents a question with options, of which one is right. */
type OptionQuestion = Exclude<Question, { type: 'extract' | 'multi' }>;

/** Returns the index of the option that the label names, null for `unsure`; -1 if it names none. */
function indexOfLabel(question: OptionQuestion, label: unknown): number {
  const options = optionsOf(question);
  return question.unsure && label === null ? options.length : options.indexOf(label);
}

function optionsOf(question: OptionQuestion): unknown[] {
  switch (question.type) {
    case 'predicate':
      return [true, false];
    case 'choice':
      return question.choices.map(({ value }) => value);
    case 'score':
      return question.levels.map(({ label }) => label);
  }
}

type NamedQuestion = Extract<Label, { path: '/v1/systemone' }>['question'];

function indexOfNamed(question: NamedQuestion, label: unknown): number {
  const options = namesOf(question);
  if (question.unsure && label === null) return options.length;
  const index = options.indexOf(String(label));
  // The label of a level may be its text, too.
  return index === -1 && question.type === 'score' ? question.criteria.indexOf(label as never) : index;
}

/** Returns the options of a question as the answer names them. */
function namesOf(question: NamedQuestion): string[] {
  if (question.type === 'noul') return ['true', 'false'];
  const { criteria } = question;
  if (!Array.isArray(criteria)) return Object.keys(criteria);
  if (question.type === 'score') return criteria.map((_, i) => String(i));
  // The cast is safe: the criteria are those of a choice.
  return (criteria as (string | { key: string })[]).map((one) => (typeof one === 'string' ? one : one.key));
}

/** Returns the numbers of the texts that labels are about, in the order of the labels: equal for the same text. */
export function textNumbers(labels: readonly Label[]): number[] {
  const numbers = new Map<string, number>();
  return labels.map(({ input }) => {
    const text = JSON.stringify(input);
    const number = numbers.get(text) ?? numbers.size;
    numbers.set(text, number);
    return number;
  });
}

/** Returns the body of the request that asks some labelled questions, all of one path and about one input. */
export function requestOfLabels(labels: readonly Label[]): object {
  const { path, input } = at(labels, 0);
  const named = () => Object.fromEntries(labels.map(({ name, question }) => [name, question]));
  switch (path) {
    case '/v1/decisions':
      return { input, questions: labels.map(({ question }) => question), abstain_below: 0, max_output_tokens: 4096 };
    case '/v1/systemone':
      return { state: input, questions: named(), abstain_below: 0 };
    case '/v1/extractions':
      return { state: input, fields: named() };
  }
}

/**
 * Converts answers and their labels to samples. An extraction gives one sample for each extracted value, which is
 * right if the label has the same value at the same JSON Pointer; a multi question one for each of its labels; a field
 * one for the decision whether there is a value, and one for the value if there is one.
 *
 * @param text the body of the response to `requestOfLabels(labels)`
 */
export function samplesOf(labels: readonly Label[], text: string): Sample[] {
  const body: unknown = JSON.parse(text);
  const { answers } = v.parse(v.object({ answers: v.union([v.array(v.unknown()), v.looseObject({})]) }), body);
  return labels.flatMap((one, i): Sample[] => {
    // A cast: each of the paths answers with a list or with members by name.
    const answer: unknown = Array.isArray(answers) ? answers[i] : (answers as Record<string, unknown>)[one.name];
    if (one.path === '/v1/systemone') return [namedSample(one, Object(answer))];
    if (one.path === '/v1/extractions') return fieldSamples(one, Object(answer));
    return decisionSamples(one, at(v.parse(DecisionsResponse, { ...Object(body), answers: [answer] }).answers, 0));
  });
}

const RIGHT_OR_WRONG = ['right', 'wrong'] as const;

function decisionSamples(
  { question, label, name }: Extract<Label, { path: '/v1/decisions' }>,
  answer: v.InferOutput<typeof DecisionAnswer>,
): Sample[] {
  if (question.type === 'extract') {
    // The cast is safe: the answer to an `extract` question has this type.
    return (answer as v.InferOutput<typeof ExtractAnswer>).fields.map(({ path, value, probability }) =>
      valueSample('field', `${name}${path}`, probability, valueAt(label, path) === value),
    );
  }
  if (question.type === 'multi') {
    // The cast is safe: the answer to a `multi` question has this type.
    const { probabilities } = answer as v.InferOutput<typeof MultiAnswer>;
    return probabilities.map(({ value, probability }) => ({
      kind: 'predicate',
      name: `${name}: ${value}`,
      options: ['true', 'false'],
      groups: [],
      logprobs: logprobsOf([probability, 1 - probability]),
      // The cast is safe: `readLabels` has checked that the label is a list.
      label: (label as unknown[]).includes(value) ? 0 : 1,
    }));
  }
  const stated =
    answer.type === 'predicate'
      ? [answer.probability, 1 - answer.probability]
      : answer.type === 'refusal'
        ? (answer.x_probabilities ?? [])
        : 'probabilities' in answer
          ? answer.probabilities.map(({ probability }) => probability)
          : [];
  const unsure = 'x_p_unsure' in answer ? answer.x_p_unsure : undefined;
  const options = optionsOf(question).map(String);
  return [
    sampleOf({
      kind: question.type,
      name,
      id: question.name,
      options,
      stated,
      unsure,
      label: indexOfLabel(question, label),
    }),
  ];
}

function namedSample(
  { question, label, name }: Extract<Label, { path: '/v1/systemone' }>,
  {
    noul,
    probabilities,
    x_p_unsure: unsure,
  }: { noul?: number; probabilities?: Record<string, number>; x_p_unsure?: number },
): Sample {
  const options = namesOf(question);
  const stated = noul === undefined ? options.map((option) => probabilities?.[option] ?? 0) : [noul, 1 - noul];
  const kind = question.type === 'noul' ? 'predicate' : question.type;
  return sampleOf({ kind, name, id: name, options, stated, unsure, label: indexOfNamed(question, label) });
}

interface Stated {
  kind: 'predicate' | 'choice' | 'score';
  name: string;
  id: string | null | undefined;
  options: readonly string[];
  stated: readonly number[];
  unsure: number | undefined;
  label: number;
}

function sampleOf({ kind, name, id, options, stated, unsure, label }: Stated): Sample {
  const groups = groupsOf(kind, unsure !== undefined, id ?? undefined);
  if (unsure === undefined) return { kind, name, options, groups, logprobs: logprobsOf(stated), label };
  const all = [...stated.map((p) => p * (1 - unsure)), unsure];
  // With `unsure`, a question is calibrated as a choice.
  return { kind: 'choice', name, options: [...options, 'unsure'], groups, logprobs: logprobsOf(all), label };
}

function valueSample(kind: CalibratedKind, name: string, probability: number, right: boolean): Sample {
  return {
    kind,
    name,
    options: RIGHT_OR_WRONG,
    groups: [],
    logprobs: rightOrWrong(probability),
    label: right ? 0 : 1,
    value: true,
  };
}

function fieldSamples(
  { label, name }: Extract<Label, { path: '/v1/extractions' }>,
  { guess, p_null = 0, confidence = 0 }: { guess?: unknown; p_null?: number; confidence?: number },
): Sample[] {
  const absent: Sample = {
    kind: 'absent',
    name: `${name}: absent`,
    options: ['absent', 'present'],
    groups: [],
    logprobs: rightOrWrong(p_null),
    label: label === null ? 0 : 1,
  };
  return label === null ? [absent] : [absent, valueSample('field', name, confidence, guess === label)];
}

/** Returns the value at a JSON Pointer; undefined if there is none. */
function valueAt(value: unknown, path: string): unknown {
  const steps = path.split('/').slice(1);
  return steps.reduce<unknown>((at, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    return typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined;
  }, value);
}

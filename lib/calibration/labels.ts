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
import { logprobsOf } from '../tasks/logprobs.ts';
import { object } from '../validation/objects.ts';
import { validate } from '../validation/validate.ts';
import { type CalibratedKind, rightOrWrong } from './calibration.ts';
import type { Labelled } from './fit.ts';

/** Holds one line of a labels file: a text, a question of /v1/decisions about it, and the right answer. */
export interface Label {
  input: string;
  question: Question;
  /** The right answer, as `readLabel` describes it. */
  label: unknown;
}

const Line = object({ input: v.string(), label: v.unknown() });

/**
 * Reads a line of a labels file: a JSON object with `input`, the members of a question of /v1/decisions, and `label`.
 * The label is true or false for a predicate, the value of a choice for a choice, the label of a level for a score, a
 * list of values for a multi question, an object for an extraction, and with `unsure` null for what the input does not
 * tell.
 *
 * @throws Error whose message says what is wrong with the line; an `AssayError` if the question is invalid
 */
export function readLabel(line: string): Label {
  const value = parsed(line);
  const { input, label } = validate(Line, value);
  // The cast is safe: the value has passed a schema of an object.
  const { input: _input, label: _label, ...rest } = value as Record<string, unknown>;
  const question = validate(DecisionQuestion, rest);
  if (question.type === 'multi') {
    const known = question.choices.map(({ value }): unknown => value);
    if (!Array.isArray(label) || !label.every((one) => known.includes(one)))
      throw new Error('The label of a multi question must be a list of its choices.');
  } else if (question.type === 'extract') {
    if (typeof label !== 'object' || label === null) throw new Error('The label of an extraction must be an object.');
  } else if (indexOfLabel(question, label) === -1) throw new Error(`label must be ${ANSWERS[question.type]}.`);
  return { input, question, label };
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

/**
 * Converts answers and their labels to samples for `fitTemperature`, each with its kind. An extraction gives one sample
 * for each extracted value, which is right if the label has the same value at the same JSON Pointer.
 *
 * @param text the body of the DecisionsResponse to the questions of `labels`, in the same order, requested with
 *   `calibrated: false` and `abstain_below: 0`
 */
export function samplesOf(labels: readonly Label[], text: string): [CalibratedKind, Labelled][] {
  const { answers } = v.parse(v.pipe(v.string(), v.parseJson(), DecisionsResponse), text);
  return labels.flatMap(({ question, label }, i): [CalibratedKind, Labelled][] => {
    const answer = at(answers, i);
    if (question.type === 'extract') {
      // The cast is safe: the answer to an `extract` question has this type.
      return (answer as v.InferOutput<typeof ExtractAnswer>).fields.map(({ path, value, probability }) => [
        'field',
        { logprobs: rightOrWrong(probability), label: valueAt(label, path) === value ? 0 : 1 },
      ]);
    }
    if (question.type === 'multi') {
      // The cast is safe: the answer to a `multi` question has this type.
      const { probabilities } = answer as v.InferOutput<typeof MultiAnswer>;
      return probabilities.map(({ value, probability }) => [
        'predicate',
        { logprobs: logprobsOf([probability, 1 - probability]), label: (label as unknown[]).includes(value) ? 0 : 1 },
      ]);
    }
    // With `unsure`, a question is calibrated as a choice.
    const kind = question.unsure ? 'choice' : question.type;
    return [[kind, { logprobs: logprobsOf(probabilitiesOf(answer)), label: indexOfLabel(question, label) }]];
  });
}

/** Returns the probabilities of all options, with that of `unsure` as the last one. */
function probabilitiesOf(answer: v.InferOutput<typeof DecisionAnswer>): number[] {
  const stated =
    answer.type === 'predicate'
      ? [answer.probability, 1 - answer.probability]
      : answer.type === 'refusal'
        ? (answer.x_probabilities ?? [])
        : 'probabilities' in answer
          ? answer.probabilities.map(({ probability }) => probability)
          : [];
  const unsure = 'x_p_unsure' in answer ? answer.x_p_unsure : undefined;
  return unsure === undefined ? stated : [...stated.map((p) => p * (1 - unsure)), unsure];
}

/** Returns the value at a JSON Pointer; undefined if there is none. */
function valueAt(value: unknown, path: string): unknown {
  const steps = path.split('/').slice(1);
  return steps.reduce<unknown>((at, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    return typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined;
  }, value);
}

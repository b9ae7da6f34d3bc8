import * as v from 'valibot';
import { at } from '../at.ts';
import { messageOf } from '../errors.ts';
import { DecisionQuestion, type DecisionQuestion as Question } from '../schema/decisions-request.ts';
import { DecisionsResponse, type ExtractAnswer } from '../schema/decisions-response.ts';
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
 * The label is true or false for a predicate, the value of a choice for a choice, the label of a level for a score, and
 * an object for an extraction.
 *
 * @throws Error whose message says what is wrong with the line; an `AssayError` if the question is invalid
 */
export function readLabel(line: string): Label {
  const value = parsed(line);
  const { input, label } = validate(Line, value);
  // The cast is safe: the value has passed a schema of an object.
  const { input: _input, label: _label, ...rest } = value as Record<string, unknown>;
  const question = validate(DecisionQuestion, rest);
  if (question.type === 'extract') {
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

/** Returns the index of the option that the label names; -1 if it names none. */
function indexOfLabel(question: Exclude<Question, { type: 'extract' }>, label: unknown): number {
  switch (question.type) {
    case 'predicate':
      // The cast is safe: `indexOf` only compares, so any other value is not found.
      return [true, false].indexOf(label as boolean);
    case 'choice':
      return question.choices.findIndex(({ value }) => value === label);
    case 'score':
      return question.levels.findIndex(({ label: name }) => name === label);
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
    const probabilities =
      answer.type === 'predicate'
        ? [answer.probability, 1 - answer.probability]
        : 'probabilities' in answer
          ? answer.probabilities.map(({ probability }) => probability)
          : [];
    return [[question.type, { logprobs: logprobsOf(probabilities), label: indexOfLabel(question, label) }]];
  });
}

/** Returns the value at a JSON Pointer; undefined if there is none. */
function valueAt(value: unknown, path: string): unknown {
  const steps = path.split('/').slice(1);
  return steps.reduce<unknown>((at, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    return typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined;
  }, value);
}

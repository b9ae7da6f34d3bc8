import { at } from '../at.ts';
import type { SentQuestion, Task, TaskBatch } from '../backend.ts';
import type { MediaPart } from '../contract/conversation.ts';
import { type Fuel, sharedFuel } from '../grammar/fuel.ts';
import { joinMembers, membersOf, membersText } from '../json/members.ts';
import { entriesAsWritten, stringifyAsWritten } from '../json/written-numbers.ts';
import { pathTo } from '../param-path.ts';
import { levelTexts, type SystemOneQuestion, type SystemOneRequest } from '../schema/systemone-request.ts';
import { extractTask } from '../tasks/extract-shape.ts';
import { additionsOf, named, optionTask, predicateTask } from './decisions.ts';
import { distributionOf } from './distribution.ts';
import { evidenceMember, type SourceText, textsIn } from './evidence.ts';
import { extractedMembers } from './extracted.ts';
import { assetParts, mediaParts } from './media.ts';
import {
  LABEL_THRESHOLD,
  labelTasks,
  type QuestionAnswer,
  type QuestionAnswers,
  type Selection,
  selectedLabels,
  withUnsure,
} from './question-answers.ts';
import { batchSettings, DEFAULT_INSTRUCTIONS, type QuestionSettings, textOf } from './settings.ts';

/* Converts requests of System One to a `TaskBatch`, and a `BatchAnswer` to its response. */

/** Names that mean the loaded model: the defaults of TypeSafe's clients, which other clients send, too. */
export const LOADED_MODEL: readonly string[] = ['jev-latest', 'jev-preview'];

/**
 * Converts a validated request of System One to a batch. Throws `invalid_type`, `invalid_value` or `unsupported_schema`
 * if `answerShape` refuses the schema or keys of an extraction.
 *
 * @param text JSON text of the request; absent: models whose prompt has its own JSON see the parsed values
 */
export function batchOfSystemOne(request: SystemOneRequest, text?: string): TaskBatch {
  const fuel = sharedFuel();
  const { model } = request;
  const questions = entriesAsWritten(request.questions);
  const members = text === undefined ? null : membersOf(text);
  const sent = members && membersOf(members.get('questions') ?? '{}');
  const state = typeof request.state === 'string' ? undefined : members?.get('state');
  return {
    ...(model === undefined || model === null || LOADED_MODEL.includes(model) ? {} : { model }),
    input: { context: textOf(request.state), ...(state === undefined ? {} : { state }) },
    media: mediaOf(request),
    tasks: named(questions.flatMap(([id, question]) => tasksOf(question, id, sentQuestion(id, sent?.get(id)), fuel))),
    ...batchSettings(request),
  };
}

function sentQuestion(id: string, text = '{}'): SentQuestion {
  const members = membersOf(text);
  const [instructions, criteria] = [members.get('instructions'), members.get('criteria')];
  return {
    id,
    ...(instructions === undefined ? {} : { instructions }),
    ...(criteria === undefined ? {} : { criteria }),
  };
}

function tasksOf(question: SystemOneQuestion, id: string, sent: SentQuestion, fuel: Fuel): Task[] {
  const asked = textOf(question.instructions ?? '') || DEFAULT_INSTRUCTIONS[KINDS[question.type]];
  if (question.type === 'multi') {
    const labels = labelsOf(question.criteria).map(([label, meaning]) => [label, described(meaning)] as const);
    return labelTasks(asked, labels, id);
  }
  const task = taskOf(question, asked, pathTo('questions', id), fuel);
  if (task.type === 'extract' || question.type === 'extract') return [task];
  return [withUnsure({ ...task, id, sent }, question.unsure)];
}

function taskOf(
  question: Exclude<SystemOneQuestion, { type: 'multi' }>,
  asked: string,
  path: string,
  fuel: Fuel,
): Task {
  switch (question.type) {
    case 'noul': {
      const { true: yes, false: no } = question.criteria ?? {};
      return predicateTask(asked, described(yes), described(no));
    }
    case 'choice': {
      const labels = labelsOf(question.criteria);
      const descriptions = labels.map(([, description]) => described(description));
      return optionTask(
        'choice',
        asked,
        labels.map(([label]) => label),
        descriptions,
      );
    }
    case 'score':
      return optionTask('score', asked, levelTexts(question.criteria));
    case 'extract':
      return extractTask(question, asked, path, fuel);
  }
}

/** Assay's name for each type of question. */
const KINDS = { noul: 'predicate', choice: 'choice', score: 'score', multi: 'multi', extract: 'extract' } as const;

/** Returns the labels of a choice with their descriptions, in the order sent. */
function labelsOf(
  criteria: Extract<SystemOneQuestion, { type: 'choice' }>['criteria'],
): readonly (readonly [label: string, description: unknown])[] {
  if (!Array.isArray(criteria)) return entriesAsWritten(criteria);
  return criteria.map((one) => (typeof one === 'string' ? [one, null] : [one.key, one.description]));
}

function described(value: unknown): string | null {
  return value === undefined || value === null ? null : textOf(value);
}

function mediaOf({ images, assets, audio, videos }: SystemOneRequest): MediaPart[] {
  return [
    ...mediaParts('image', images ?? [], (i) => `images[${i}]`),
    ...assetParts(assets),
    ...mediaParts('audio', audio ?? [], (i) => `audio[${i}]`),
    // No supported model reads video. As an image, it is refused as media that the model or the decoder cannot read.
    ...mediaParts('image', videos ?? [], (i) => `videos[${i}]`),
  ];
}

/**
 * Returns the JSON text of a SystemOneResponse. It is built as text, because a JavaScript object would not keep the
 * order of answers and extracted members.
 *
 * @param answer the answers to the questions of `batchOfSystemOne(request)`
 */
export function systemOneBody(request: SystemOneRequest, answer: QuestionAnswers, settings: QuestionSettings): string {
  const answers = answersOfSystemOne(request, answer.answers, settings);
  const { promptTokens, completionTokens } = answer.usage;
  const usage = { input_tokens: promptTokens, output_tokens: completionTokens };
  return `{"model":${JSON.stringify(answer.model)},"answers":${joinMembers(answers)},"usage":${JSON.stringify(usage)}}`;
}

/**
 * Returns the answers as pairs of name and JSON text, in the order of the questions.
 *
 * @param given the answers to the questions of `batchOfSystemOne`; more may follow
 */
export function answersOfSystemOne(
  { state, questions }: Pick<SystemOneRequest, 'state' | 'questions'>,
  given: readonly QuestionAnswer[],
  settings: QuestionSettings,
): (readonly [name: string, json: string])[] {
  const sources = textsIn(state, '/state');
  return entriesAsWritten(questions).map(([id, question], i) => [
    id,
    answerText(question, at(given, i), settings, sources),
  ]);
}

function answerText(
  question: SystemOneQuestion,
  answer: QuestionAnswer,
  settings: QuestionSettings,
  sources: readonly SourceText[],
): string {
  if (question.type === 'extract')
    return `{"type":"extract",${extractedMembers(answer, sources, { unit: settings.spanUnit })}${membersText(additionsOf(answer))}}`;
  if (question.type === 'multi') {
    const labels = labelsOf(question.criteria).map(([label]) => label);
    return multiAnswerText(labels, answer, question);
  }
  const formula = settings.confidence ?? answer.confidence ?? 'margin';
  const distribution = distributionOf(answer, KINDS[question.type], formula);
  const { probabilities, best, expected, confidence } = distribution;
  const byName = (names: readonly string[]) => joinMembers(names.map((name, i) => [name, String(probabilities[i])]));
  const additions = { ...additionsOf(answer), ...evidenceMember(answer, sources, settings.spanUnit) };
  const more = membersText(additions);
  switch (question.type) {
    case 'noul':
      return JSON.stringify({
        type: 'noul',
        noul: probabilities[0],
        ...(answer.abstained ? { x_abstained: true } : {}),
        ...additions,
      });
    case 'choice': {
      const labels = labelsOf(question.criteria).map(([label]) => label);
      const unlikely = at(probabilities, best) < settings.abstainBelow;
      const abstained = unlikely || answer.abstained ? ',"x_abstained":true' : '';
      return (
        `{"type":"choice","choice":${JSON.stringify(labels[best])},"probabilities":${byName(labels)},` +
        `"confidence":${confidence}${abstained}${more}}`
      );
    }
    case 'score': {
      const levels = question.criteria.map((_, i) => String(i));
      const legend = joinMembers(
        question.criteria.map((level, i) => [String(i), stringifyAsWritten(level ?? String(i))]),
      );
      return (
        `{"type":"score","score":${expected},"legend":${legend},"probabilities":${byName(levels)},` +
        `"confidence":${confidence}${answer.abstained ? ',"x_abstained":true' : ''}${more}}`
      );
    }
  }
}

/** Returns the JSON text of the answer to a question of many labels, with the probabilities by label. */
export function multiAnswerText(labels: readonly string[], answer: QuestionAnswer, selection: Selection): string {
  const probabilities = answer.labels ?? [];
  const { selected, confidence } = selectedLabels(probabilities, selection);
  const byLabel = joinMembers(labels.map((label, i) => [label, String(at(probabilities, i))]));
  return (
    `{"type":"multi","selected":${JSON.stringify(selected.map((i) => at(labels, i)))},"probabilities":${byLabel},` +
    `"threshold":${selection.threshold ?? LABEL_THRESHOLD},"set_confidence":${confidence}${membersText(additionsOf(answer))}}`
  );
}

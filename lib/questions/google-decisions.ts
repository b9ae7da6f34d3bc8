import { at } from '../at.ts';
import type { DecideTask, TaskBatch } from '../backend.ts';
import type { MediaPart, Part } from '../contract/conversation.ts';
import { joinMembers, membersText } from '../json/members.ts';
import { entriesAsWritten } from '../json/written-numbers.ts';
import type { GoogleDecisionsRequest, GooglePart, GoogleQuestion } from '../schema/google-decisions.ts';
import { additionsOf, named, optionTask, predicateTask } from './decisions.ts';
import { distributionOf } from './distribution.ts';
import { evidenceMember, type SourceText, type SpanUnit } from './evidence.ts';
import { labelTasks, type QuestionAnswer, type QuestionAnswers, withUnsure } from './question-answers.ts';
import { batchSettings } from './settings.ts';
import { multiAnswerText } from './systemone.ts';

/* Converts requests of Google's Decisions to a `TaskBatch`, and a `BatchAnswer` to its response. */

/** Bounds of the probability that the answer to a `noul` question is yes. */
const NOUL_BOUNDS = [0.01, 0.99] as const;

/** Converts a validated request of Google's Decisions to a batch. */
export function batchOfGoogleDecisions(request: GoogleDecisionsRequest): TaskBatch {
  const { model, input, questions } = request;
  const parts = Array.isArray(input) ? input : [input];
  return {
    model: model.replace(/^models\//, ''),
    input:
      typeof input === 'string'
        ? { context: input }
        : {
            messages: [{ role: 'user', parts: parts.map((part, i) => partOf(part, Array.isArray(input) ? i : null)) }],
          },
    media: [],
    tasks: named(entriesAsWritten(questions).flatMap(([id, question]) => tasksOf(question, id))),
    ...batchSettings(request),
  };
}

function partOf(part: GooglePart | string, index: number | null): Part {
  if (typeof part === 'string') return { type: 'text', text: part };
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { type, data, uri, mime_type } = part;
  const path = index === null ? 'input' : `input[${index}]`;
  const source: MediaPart['source'] = data
    ? { type: 'base64', data, mimeType: mime_type ?? `${type}/*` }
    : { type: 'url', url: uri ?? '' };
  return { type, source, param: `${path}.${data ? 'data' : 'uri'}` };
}

function tasksOf(question: GoogleQuestion, id: string): DecideTask[] {
  const { instructions } = question;
  const asked =
    typeof instructions === 'string'
      ? instructions
      : [instructions]
          .flat()
          .map(({ text }) => text)
          .join('\n');
  if (question.type === 'multi') {
    const [labels, descriptions] = labelsOf(question.criteria);
    const described = labels.map((label, i) => [label, descriptions[i]] as const);
    return labelTasks(asked, described, id);
  }
  return [{ ...withUnsure(taskOf(question, asked), question.unsure), id }];
}

function taskOf(question: Exclude<GoogleQuestion, { type: 'multi' }>, asked: string): DecideTask {
  switch (question.type) {
    case 'noul': {
      const { true_description: yes, false_description: no } = question.criteria ?? {};
      return predicateTask(asked, yes, no);
    }
    case 'choice':
      return optionTask('choice', asked, ...labelsOf(question.criteria));
    case 'score':
      return optionTask('score', asked, question.criteria);
  }
}

/** Returns the labels of a choice and their descriptions, in the order sent. */
function labelsOf(criteria: Extract<GoogleQuestion, { type: 'choice' }>['criteria']): [string[], (string | null)[]] {
  const labels = entriesAsWritten(criteria);
  return [labels.map(([label]) => label), labels.map(([, description]) => description)];
}

/**
 * Returns the JSON text of a GoogleDecisionsResponse. It is built as text, because a JavaScript object would not keep
 * the order of answers and options.
 *
 * @param answer the answers to the questions of `batchOfGoogleDecisions(request)`
 */
export function googleDecisionsBody(
  { input, questions, span_unit }: GoogleDecisionsRequest,
  answer: QuestionAnswers,
): string {
  const sources = Array.isArray(input)
    ? input.flatMap((part, i) => sourceOf(part, `/input/${i}`))
    : sourceOf(input, '/input');
  const answers = entriesAsWritten(questions).map(
    ([id, question], i) => [id, answerText(question, at(answer.answers, i), sources, span_unit)] as const,
  );
  const { promptTokens, completionTokens } = answer.usage;
  const usage = {
    total_input_tokens: promptTokens,
    total_output_tokens: completionTokens,
    total_cached_tokens: answer.cachedTokens ?? 0,
    total_tokens: promptTokens + completionTokens,
  };
  return `{"answers":${joinMembers(answers)},"usage":${JSON.stringify(usage)}}`;
}

function sourceOf(part: GooglePart | string, source: string): SourceText[] {
  if (typeof part === 'string') return [{ source, text: part }];
  return part.type === 'text' ? [{ source: `${source}/text`, text: part.text }] : [];
}

/** Writes one answer. Google's confidence is the probability of the most likely option. */
function answerText(
  question: GoogleQuestion,
  answer: QuestionAnswer,
  sources: readonly SourceText[],
  unit: SpanUnit | undefined,
): string {
  if (question.type === 'multi') {
    const [labels] = labelsOf(question.criteria);
    return multiAnswerText(labels, answer, question);
  }
  const kind = question.type === 'noul' ? 'predicate' : question.type;
  const { probabilities, best, expected } = distributionOf(answer, kind, 'margin');
  const byName = (names: readonly string[]) => joinMembers(names.map((name, i) => [name, String(probabilities[i])]));
  const additions = {
    ...(answer.abstained ? { x_abstained: true } : {}),
    ...additionsOf(answer),
    ...evidenceMember(answer, sources, unit),
  };
  const more = membersText(additions);
  switch (question.type) {
    case 'noul': {
      const noul = Math.min(NOUL_BOUNDS[1], Math.max(NOUL_BOUNDS[0], at(probabilities, 0)));
      return JSON.stringify({ type: 'noul', noul, confidence: Math.max(noul, 1 - noul), ...additions });
    }
    case 'choice': {
      const [names] = labelsOf(question.criteria);
      return (
        `{"type":"choice","choice":${JSON.stringify(names[best])},"confidence":${probabilities[best]},` +
        `"probabilities":${byName(names)}${more}}`
      );
    }
    case 'score': {
      const levels = question.criteria.map((_, i) => String(i));
      const legend = joinMembers(question.criteria.map((level, i) => [String(i), JSON.stringify(level)]));
      return (
        `{"type":"score","score":${expected},"confidence":${probabilities[best]},"legend":${legend},` +
        `"probabilities":${byName(levels)}${more}}`
      );
    }
  }
}

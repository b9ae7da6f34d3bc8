import { at } from '../at.ts';
import type { DecideTask, Task, TaskBatch } from '../backend.ts';
import { textMessage } from '../chat/messages.ts';
import type { ChatMessage, MediaPart, Part } from '../contract/conversation.ts';
import { type Fuel, sharedFuel } from '../grammar/fuel.ts';
import { pointerStep } from '../json/leaves.ts';
import { membersText } from '../json/members.ts';
import type { DecisionItem, DecisionPart, DecisionQuestion, DecisionsRequest } from '../schema/decisions-request.ts';
import { extractTask } from '../tasks/extract-shape.ts';
import { type Distribution, distributionOf } from './distribution.ts';
import type { SourceText } from './evidence.ts';
import { evidenceMember, textsIn } from './evidence.ts';
import { extractedMembers } from './extracted.ts';
import { mediaPart } from './media.ts';
import {
  certifiedOf,
  LABEL_THRESHOLD,
  labelTasks,
  type QuestionAnswer,
  type QuestionAnswers,
  selectedLabels,
  windowMembers,
  withUnsure,
} from './question-answers.ts';
import { batchSettings, DEFAULT_INSTRUCTIONS, type QuestionSettings, textOf } from './settings.ts';

/* Converts requests of OpenAI's Decisions API to a `TaskBatch`, and a `BatchAnswer` to its response. */

/** The options of a predicate (a question whether something is true) as the model sees them. */
export const YES_OR_NO = ['yes', 'no'] as const;

/**
 * Converts a validated request of the Decisions API to a batch. Throws `invalid_type`, `invalid_value` or
 * `unsupported_schema` if `answerShape` refuses the schema or keys of an extraction.
 */
export function batchOfDecisions(request: DecisionsRequest): TaskBatch {
  const fuel = sharedFuel();
  const { input } = request;
  const asked = request.questions.flatMap(({ instructions }, i) =>
    typeof instructions === 'string' ? [] : mediaOf(instructions, `questions[${i}].instructions`),
  );
  return {
    model: request.model,
    input: typeof input === 'string' ? { context: input } : { messages: input.map(messageOf) },
    media: asked,
    tasks: named(request.questions.flatMap((question, i) => tasksOf(question, i, fuel))),
    ...batchSettings(request),
  };
}

/** Names the tasks of a batch by their indices, because the names in a request may repeat or be absent. */
export function named<TTask extends Task>(tasks: readonly TTask[]): TTask[] {
  return tasks.map((task, i) => ({ ...task, name: `q${i}` }));
}

function tasksOf(question: DecisionQuestion, index: number, fuel: Fuel): Task[] {
  const asked = wordsOf(question.instructions) || DEFAULT_INSTRUCTIONS[question.type];
  if (question.type === 'multi') {
    const labels = optionTexts(question.choices.map(({ value }) => value));
    const described = labels.map((label, i) => [label, at(question.choices, i).description] as const);
    return labelTasks(asked, described, question.name ?? undefined);
  }
  const task = taskOf(question, asked, `questions[${index}]`, fuel);
  if (task.type === 'extract' || question.type === 'extract') return [task];
  return [{ ...withUnsure(task, question.unsure), ...(question.name ? { id: question.name } : {}) }];
}

function taskOf(question: Exclude<DecisionQuestion, { type: 'multi' }>, asked: string, path: string, fuel: Fuel): Task {
  switch (question.type) {
    case 'predicate':
      return predicateTask(asked, question.criteria?.true, question.criteria?.false);
    case 'choice': {
      const options = optionTexts(question.choices.map(({ value }) => value));
      return optionTask('choice', asked, options, question.choices.map(descriptionOf));
    }
    case 'score': {
      const options = question.levels.map(({ label }) => label);
      return optionTask('score', asked, options, question.levels.map(descriptionOf));
    }
    case 'extract':
      return extractTask(question, asked, path, fuel);
  }
}

const descriptionOf = ({ description }: { description?: string | null | undefined }) => description;

/* Tasks have no names until `named` gives them theirs. */

/**
 * Converts a predicate to a decide task. `yes` and `no` describe when each answer applies; null or undefined: not
 * described.
 */
export function predicateTask(question: string, yes?: string | null, no?: string | null): DecideTask {
  return optionTask('predicate', question, YES_OR_NO, [yes, no]);
}

/**
 * Converts a question with options to a decide task of this kind. `descriptions` has one for each option, or is empty;
 * an empty one counts as absent.
 */
export function optionTask(
  kind: NonNullable<DecideTask['kind']>,
  question: string,
  options: readonly string[],
  descriptions: readonly (string | null | undefined)[] = [],
): DecideTask {
  const task: DecideTask = { type: 'decide', kind, name: '', question, options };
  if (descriptions.some(Boolean)) task.descriptions = descriptions.map((one) => one || null);
  return task;
}

/** Returns the option values as distinct texts for the model: true and "true" must differ. */
function optionTexts(values: readonly (string | boolean)[]): string[] {
  const texts = new Set(values.filter((value) => typeof value === 'string'));
  return values.map((value) => {
    let text = String(value);
    // Only a boolean can collide with a text of the same spelling.
    while (typeof value === 'boolean' && texts.has(text)) text += ' (boolean)';
    return text;
  });
}

/**
 * Joins the text and JSON parts of a question's instructions with line breaks. Its images and audio are added to the
 * batch's media (`mediaOf`).
 */
function wordsOf(content: string | readonly DecisionPart[]): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => textOfPart(part) ?? []).join('\n');
}

function textOfPart(part: DecisionPart): string | null {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      return part.text;
    case 'refusal':
      return part.refusal;
    case 'input_json':
      return textOf(part.data);
    case 'input_image':
    case 'input_audio':
      return null;
  }
}

function mediaOf(parts: readonly DecisionPart[], path: string): MediaPart[] {
  return parts.flatMap((part, i) =>
    part.type === 'input_image' || part.type === 'input_audio' ? [mediaPart(part, `${path}[${i}]`)] : [],
  );
}

/**
 * Converts an input item to a `ChatMessage`. A tool call becomes text of the assistant, its output becomes text of the
 * user.
 */
function messageOf(item: DecisionItem, index: number): ChatMessage {
  const path = `input[${index}]`;
  switch (item.type ?? 'message') {
    case 'message':
      return {
        role: item.role === 'developer' ? 'system' : item.role!,
        parts: partsOf(item.content!, `${path}.content`),
      };
    case 'function_call':
      return textMessage('assistant', `Call of ${item.name}: ${item.arguments}`);
    case 'custom_tool_call':
      return textMessage('assistant', `Call of ${item.name}: ${item.input}`);
    default: {
      const parts = partsOf(item.output!, `${path}.output`);
      return { role: 'user', parts: [{ type: 'text', text: 'Output of the call:' }, ...parts] };
    }
  }
}

function partsOf(content: string | readonly DecisionPart[], path: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map(
    (part, i): Part =>
      part.type === 'input_image' || part.type === 'input_audio'
        ? mediaPart(part, `${path}[${i}]`)
        : { type: 'text', text: textOfPart(part)! },
  );
}

/**
 * Returns the JSON text of a DecisionsResponse. It is built as text, because a JavaScript object would not keep the
 * order of extracted members.
 *
 * @param answer the answers to the questions of `batchOfDecisions(request)`
 */
export function decisionsBody(request: DecisionsRequest, answer: QuestionAnswers, settings: QuestionSettings): string {
  const sources = sourcesOf(request.input);
  const answers = request.questions.map((question, i) =>
    answerText(question, at(answer.answers, i), settings, sources),
  );
  const { promptTokens, completionTokens } = answer.usage;
  const usage = {
    input_tokens: promptTokens,
    // Writing to the prefix cache costs nothing, so it is not counted.
    input_tokens_details: { cached_tokens: answer.cachedTokens ?? 0, cache_write_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + completionTokens,
  };
  return `{"model":${JSON.stringify(answer.model)},"answers":[${answers.join(',')}],"usage":${JSON.stringify(usage)}}`;
}

function answerText(
  question: DecisionQuestion,
  answer: QuestionAnswer,
  settings: QuestionSettings,
  sources: readonly SourceText[],
): string {
  const name = question.name ?? null;
  if (question.type === 'extract') {
    return `{"type":"extract","name":${JSON.stringify(name)},${extractedMembers(answer, sources, { unit: settings.spanUnit })}${membersText(additionsOf(answer))}}`;
  }
  if (question.type === 'multi')
    return JSON.stringify({ ...multiAnswer(question, name, answer.labels ?? []), ...additionsOf(answer) });
  const formula = settings.confidence ?? answer.confidence ?? 'entropy';
  const distribution = distributionOf(answer, question.type, formula);
  const more = { ...additionsOf(answer), ...evidenceMember(answer, sources, settings.spanUnit) };
  if (answer.abstained) {
    return JSON.stringify({ type: 'refusal', name, x_probabilities: distribution.probabilities, ...more });
  }
  return JSON.stringify({ ...answerOf(question, name, distribution, settings), ...more });
}

/** Returns the members that Assay adds to an answer of any decision format. */
export function additionsOf(answer: QuestionAnswer): object {
  const { automated, unsure, labelMass, answeredBy, escalation } = answer;
  return {
    ...(answeredBy === undefined ? {} : { x_answered_by: answeredBy }),
    ...(escalation === undefined ? {} : { x_escalation: escalation }),
    ...(automated === undefined ? {} : { x_automated: certifiedOf(answer) }),
    ...(unsure === undefined ? {} : { x_p_unsure: unsure }),
    ...(labelMass === undefined ? {} : { x_label_mass: labelMass }),
    ...windowMembers(answer),
  };
}

function multiAnswer(
  question: Extract<DecisionQuestion, { type: 'multi' }>,
  name: string | null,
  probabilities: readonly number[],
): object {
  const { selected, confidence } = selectedLabels(probabilities, question);
  return {
    type: 'multi',
    name,
    selected: selected.map((i) => at(question.choices, i).value),
    probabilities: question.choices.map(({ value }, i) => ({ value, probability: probabilities[i] })),
    threshold: question.threshold ?? LABEL_THRESHOLD,
    set_confidence: confidence,
  };
}

function answerOf(
  question: Exclude<DecisionQuestion, { type: 'extract' | 'multi' }>,
  name: string | null,
  { probabilities, best, expected, confidence }: Distribution,
  { abstainBelow }: QuestionSettings,
): object {
  switch (question.type) {
    case 'predicate':
      return { type: 'predicate', name, probability: probabilities[0] };
    case 'choice': {
      if (at(probabilities, best) < abstainBelow) return { type: 'refusal', name };
      const each = question.choices.map(({ value }, i) => ({ value, probability: probabilities[i] }));
      return { type: 'choice', name, choice: at(question.choices, best).value, confidence, probabilities: each };
    }
    case 'score': {
      const each = question.levels.map(({ label }, i) => ({ label, value: i, probability: probabilities[i] }));
      return { type: 'score', name, score: expected, confidence, probabilities: each };
    }
  }
}

/** Returns the texts of the input in which evidence is searched. */
function sourcesOf(input: DecisionsRequest['input']): SourceText[] {
  if (typeof input === 'string') return [{ source: '/input', text: input }];
  return input.flatMap((item, i) =>
    (['content', 'arguments', 'input', 'output'] as const).flatMap((member) => {
      const value = item[member];
      const path = `/input/${i}/${member}`;
      if (value === undefined || typeof value === 'string') return textsIn(value, path);
      return value.flatMap((part, j) => partSources(part, `${path}/${j}`));
    }),
  );
}

function partSources(part: DecisionPart, path: string): SourceText[] {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      return textsIn(part.text, `${path}/text`);
    case 'refusal':
      return textsIn(part.refusal, `${path}/${pointerStep('refusal')}`);
    case 'input_json':
      return textsIn(part.data, `${path}/data`);
    case 'input_image':
    case 'input_audio':
      return [];
  }
}

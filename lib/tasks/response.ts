import { at } from '../at.ts';
import { joinMembers, membersText, splitMembers } from '../json/members.ts';
import { evidenceMember, type SourceText, textsIn } from '../questions/evidence.ts';
import {
  certifiedOf,
  type QuestionAnswer,
  type QuestionAnswers,
  selectedLabels,
} from '../questions/question-answers.ts';
import type { DecideRequest, RunTasksRequest } from '../schema/task-request.ts';

/*
 * Builds response bodies as text. Answers arrive as JSON text and are not parsed: a JavaScript object would move a task
 * named `10` to the front and lose one named `__proto__` (docs/interface.md, D-23). The schemas of the bodies are in
 * `lib/schema/task-response.ts`.
 */

/**
 * Builds the JSON text of RunTasksResponse: `results` and its alias `tasks`, in the order sent. `id` is the request's
 * id.
 */
export function tasksBody(id: string, answer: QuestionAnswers, request: RunTasksRequest): string {
  const { tasks } = request;
  const sources = sourcesOf(request);
  const results = joinMembers(answer.answers.map((one, i) => [one.name, resultText(one, at(tasks, i), sources)]));
  return responseBody(id, answer, results, `"results":${results},"tasks":${results}`);
}

/** Returns the JSON text of the answer to a task. */
function resultText(
  answer: QuestionAnswer,
  task: RunTasksRequest['tasks'][number],
  sources: readonly SourceText[],
): string {
  const { json, unsure, answeredBy, escalation, labels = [], window } = answer;
  if (task.type === 'multi') {
    const { selected, confidence } = selectedLabels(labels, task);
    const probabilities = joinMembers(task.options.map((option, i) => [option, String(at(labels, i))]));
    const values = JSON.stringify(selected.map((i) => at(task.options, i)));
    return `{"values":${values},"probabilities":${probabilities},"set_confidence":${confidence}}`;
  }
  const more = {
    ...(answer.automated === undefined ? {} : { x_automated: certifiedOf(answer) }),
    ...(answeredBy === undefined ? {} : { x_answered_by: answeredBy }),
    ...(escalation === undefined ? {} : { x_escalation: escalation }),
    ...(unsure === undefined ? {} : { x_p_unsure: unsure }),
    ...(window ? { x_window: window } : {}),
    ...evidenceMember(answer, sources),
  };
  return task.type === 'extract' ? json : `${json.slice(0, -1)}${membersText(more)}}`;
}

/** Returns the texts of the input in which evidence is searched. */
function sourcesOf({ context, messages = [] }: Pick<RunTasksRequest, 'context' | 'messages'>): SourceText[] {
  if (context !== undefined) return [{ source: '/context', text: context }];
  return messages.flatMap(({ content }, i) => textsIn(content, `/messages/${i}/content`));
}

/**
 * Builds the JSON text of DecideResponse: `result`, its alias `decision`, and the bare `value`. `id` is the request's
 * id.
 */
export function decisionBody(id: string, answer: QuestionAnswers, request: DecideRequest): string {
  const json = resultText(at(answer.answers, 0), { type: 'decide', question: '' }, sourcesOf(request));
  const value = splitMembers(json).get('value');
  return responseBody(id, answer, json, `"result":${json},"decision":${json},"value":${value}`);
}

/** Builds the JSON text of ExtractResponse: `result` and its alias `data`. `id` is the request's id. */
export function extractionBody(id: string, answer: QuestionAnswers): string {
  const { json } = at(answer.answers, 0);
  return responseBody(id, answer, json, `"result":${json},"data":${json}`);
}

/**
 * Builds the JSON text of a response body.
 *
 * @param content text of `choices[0].message.content`
 * @param members JSON text of the members that only this kind of response has
 */
function responseBody(
  id: string,
  { model, finishReason, usage }: QuestionAnswers,
  content: string,
  members: string,
): string {
  const { promptTokens, completionTokens } = usage;
  const choice = { message: { role: 'assistant', content }, finish_reason: finishReason };
  const tokens = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  return (
    `{"id":${JSON.stringify(id)},"model":${JSON.stringify(model)},"choices":${JSON.stringify([choice])},` +
    `${members},"usage":${JSON.stringify(tokens)}}`
  );
}

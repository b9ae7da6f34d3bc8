import type { DecideTask, Task, TaskBatch } from '../../../lib/backend.ts';
import type { ChatMessage, MediaPart, Part } from '../../../lib/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { shape } from './task-wire.ts';

/**
 * Builds the body for an upstream's `POST /v1/decisions`, with the tasks of a batch that asks for probabilities, under
 * the same names.
 */
export function questionsBody({ model, input, media, tasks, maxOutputTokens, probabilities }: TaskBatch): string {
  const conversation: readonly ChatMessage[] =
    'messages' in input ? input.messages : [{ role: 'user', parts: [{ type: 'text', text: input.context }] }];
  const plain = 'context' in input && media.length === 0;
  return JSON.stringify({
    model,
    input: plain ? input.context : messages(conversation, media),
    questions: tasks.map(question),
    max_output_tokens: maxOutputTokens,
    orders: probabilities?.orders,
    calibrated: probabilities?.calibrated,
    // The edge decides about abstention, as it answers the caller.
    abstain_below: 0,
  });
}

/** Returns the conversation as messages, with the media of the whole request after the last one. */
function messages(conversation: readonly ChatMessage[], media: readonly MediaPart[]): object[] {
  const told = conversation.map(({ role, parts }) => ({ role, content: parts.map((one) => part(role, one)) }));
  return media.length === 0 ? told : [...told, { role: 'user', content: media.map((one) => part('user', one)) }];
}

function part(role: ChatMessage['role'], one: Part): object {
  if (one.type === 'text') return { type: role === 'assistant' ? 'output_text' : 'input_text', text: one.text };
  const { source, detail } = one;
  const url = source.type === 'url' ? source.url : `data:${source.mimeType};base64,${source.data}`;
  return { type: 'input_image', image_url: url, detail };
}

function question(task: Task): object {
  const { name } = task;
  if (task.type === 'extract') return { type: 'extract', name, instructions: task.instruction, ...shape(task.shape) };
  return { name, instructions: task.question, ...options(task) };
}

function options({ kind = 'choice', options = [], descriptions = [] }: DecideTask): object {
  const described = (i: number) => descriptions[i] ?? undefined;
  switch (kind) {
    case 'predicate':
      return { type: 'predicate', criteria: { true: described(0), false: described(1) } };
    case 'choice':
      return { type: 'choice', choices: options.map((value, i) => ({ value, description: described(i) })) };
    case 'score':
      return { type: 'score', levels: options.map((label, i) => ({ label, description: described(i) })) };
  }
}

/**
 * Returns an upstream's error with the `param` of the caller's request: the upstream refuses the first of the media,
 * which has another path in its own request.
 */
export function askedHere(error: unknown, { input, media }: TaskBatch): unknown {
  if (!(error instanceof AssayError) || error.code !== 'unsupported_modality') return error;
  const told = 'messages' in input ? input.messages.flatMap(({ parts }) => parts) : [];
  const first = [...told, ...media].find((one) => one.type !== 'text');
  return first ? new AssayError(error.code, error.message, { param: first.param }) : error;
}

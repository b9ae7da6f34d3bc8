import type { DecideTask, Task, TaskBatch } from '../../../lib/backend.ts';
import type { ChatMessage, Part } from '../../../lib/contract/conversation.ts';
import { dataUrlOf } from '../../../lib/data-url.ts';
import { audioFormat } from '../../../lib/messages.ts';
import { withCallersParam } from './callers-param.ts';
import { shape } from './task-wire.ts';

/**
 * Returns the JSON text of the body for an upstream's `POST /v1/decisions`, from a batch that asks for probabilities.
 * Each task becomes a question with the same name.
 */
export function questionsBody(batch: TaskBatch): string {
  const { model, input, media, tasks, maxOutputTokens, probabilities } = batch;
  const plain = 'context' in input && media.length === 0;
  return JSON.stringify({
    model,
    input: plain
      ? input.context
      : conversationOf({ input, media }).map(({ role, parts }) => ({
          role,
          content: parts.map((one) => part(role, one)),
        })),
    questions: tasks.map(question),
    max_output_tokens: maxOutputTokens,
    orders: probabilities?.orders,
    calibrated: probabilities?.calibrated,
    cache_salt: batch.cacheSalt,
    // The edge applies the caller's `abstain_below` itself.
    abstain_below: 0,
  });
}

/**
 * Returns the input as messages. The images and recordings of the request come first in the last user message, as in
 * the prompt.
 */
function conversationOf({ input, media }: Pick<TaskBatch, 'input' | 'media'>): readonly ChatMessage[] {
  const messages: readonly ChatMessage[] =
    'messages' in input ? input.messages : [{ role: 'user', parts: [{ type: 'text', text: input.context }] }];
  if (media.length === 0) return messages;
  const last = messages.at(-1);
  if (last?.role !== 'user') return [...messages, { role: 'user', parts: media }];
  return [...messages.slice(0, -1), { ...last, parts: [...media, ...last.parts] }];
}

function part(role: ChatMessage['role'], one: Part): object {
  if (one.type === 'text') return { type: role === 'assistant' ? 'output_text' : 'input_text', text: one.text };
  const { source, detail } = one;
  const format = one.type === 'audio' && source.type === 'base64' ? audioFormat(source.mimeType) : null;
  if (source.type === 'base64' && format !== null) {
    return { type: 'input_audio', input_audio: { data: source.data, format } };
  }
  const url = source.type === 'url' ? source.url : dataUrlOf(source);
  return one.type === 'audio'
    ? { type: 'input_audio', audio_url: url }
    : { type: 'input_image', image_url: url, detail };
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

/** Matches the path of an image or recording in a body of `questionsBody`; captures the indices of message and part. */
const MEDIA_PATH = /^input\[(\d+)\]\.content\[(\d+)\]\.(?:image_url|audio_url|input_audio)/u;

/**
 * Returns an upstream's error to `questionsBody(batch)` with the paths of the caller's request (`withCallersParam`).
 */
export const withBatchParam = (error: unknown, batch: TaskBatch): unknown =>
  withCallersParam(error, MEDIA_PATH, conversationOf(batch));

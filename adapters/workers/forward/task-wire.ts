import type { AnswerShape } from '../../../lib/answer-shape.ts';
import type { Task, TaskBatch } from '../../../lib/backend.ts';
import { media, message } from './message-wire.ts';

/**
 * Default values of request fields. Fields with these values are omitted: the forwarded request must not be longer than
 * the caller's, which may already have the largest allowed size.
 */
const DEFAULTS = { temperature: 0, maxOutputTokens: 16 };

/** Returns the JSON text of the body for an upstream's `POST /v1/tasks`. The upstream parses it to the same batch. */
export function tasksBody(batch: TaskBatch): string {
  const { model, input, temperature, maxOutputTokens, language } = batch;
  const images = batch.media.filter(({ type }) => type === 'image');
  const audio = batch.media.filter(({ type }) => type === 'audio');
  return JSON.stringify({
    model,
    ...('context' in input ? { context: input.context } : { messages: input.messages.map(message) }),
    ...(images.length > 0 ? { images: images.map(media) } : {}),
    ...(audio.length > 0 ? { audio: audio.map(media) } : {}),
    tasks: batch.tasks.map(task),
    temperature: temperature === DEFAULTS.temperature ? undefined : temperature,
    max_output_tokens: maxOutputTokens === DEFAULTS.maxOutputTokens ? undefined : maxOutputTokens,
    target_language: language,
    cache_salt: batch.cacheSalt,
  });
}

function task(task: Task): object {
  const { type, name, instruction, language } = task;
  const common = { type, name, instruction, target_language: language };
  if (task.type === 'decide') return { ...common, question: task.question, options: task.options };
  return { ...common, ...shape(task.shape) };
}

/** Returns the fields of an extract task that define the form of its answer: `keys`, `schema`, both or neither. */
export function shape(shape: AnswerShape): object {
  switch (shape.kind) {
    case 'keys':
      return { keys: shape.keys };
    case 'schema':
      return { schema: shape.schema, keys: shape.keys };
    default:
      return {};
  }
}

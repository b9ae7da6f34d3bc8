import * as v from 'valibot';
import { at } from '../../../lib/at.ts';
import type { BatchAnswer, Task, TaskBatch } from '../../../lib/backend.ts';
import type { AnswerShape } from '../../../lib/contract/answer-shape.ts';
import type { ChatMessage, MediaPart, Part } from '../../../lib/contract/conversation.ts';
import { dataUrlOf } from '../../../lib/data-url.ts';
import { splitMembers } from '../../../lib/json/members.ts';
import { parseModelId } from '../../../lib/model-id.ts';
import { count } from '../../../lib/schema/values.ts';
import { CUT_TASKS_HEADER, readCutTasks } from '../../../lib/tasks/cut-tasks.ts';
import { unreachable } from './upstream-fault.ts';

/** Describes the members of a RunTasksResponse that are read, except `results`. */
const Envelope = v.object({
  model: v.string(),
  choices: v.pipe(v.array(v.object({ finish_reason: v.picklist(['stop', 'length', 'content_filter']) })), v.length(1)),
  usage: v.object({ prompt_tokens: count, completion_tokens: count }),
});

/**
 * Returns the answer to a batch from the body and headers with which an upstream answered `tasksBody(batch)`. Throws
 * `UpstreamFault` unless they are valid and have an answer to each task, which may be cut.
 */
export function taskAnswer({ text, headers }: { text: string; headers: Headers }, batch: TaskBatch): BatchAnswer {
  try {
    // Splits the text instead of parsing it whole: JavaScript objects reorder names such as 10 and lose __proto__.
    const members = splitMembers(text);
    const value = (name: string) => JSON.parse(members.get(name) ?? 'null');
    const results = splitMembers(members.get('results') ?? '');
    const { model, choices, usage } = v.parse(Envelope, {
      model: value('model'),
      choices: value('choices'),
      usage: value('usage'),
    });
    const names = batch.tasks.map(({ name }) => name);
    const cut = readCutTasks(headers.get(CUT_TASKS_HEADER), names);
    return {
      model: parseModelId(model),
      answers: names.map((name) => ({ name, json: results.get(name) ?? missing(name) })),
      finishReason: at(choices, 0).finish_reason,
      ...(cut ? { cut } : {}),
      usage: { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens },
    };
  } catch (cause) {
    throw unreachable(cause);
  }
}

function missing(name: string): never {
  throw new Error(`there is no answer to ${name}`);
}

/**
 * Default values of request fields. Fields with these values are omitted: the forwarded request must not be longer than
 * the caller's, which may already have the largest allowed size.
 */
const DEFAULTS = { temperature: 0, maxOutputTokens: 16 };

/** Returns the JSON text of the body for an upstream's `POST /v1/tasks`. The upstream parses it to the same batch. */
export function publicTasksRequest(batch: TaskBatch): string {
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
function shape(shape: AnswerShape): object {
  switch (shape.kind) {
    case 'keys':
      return { keys: shape.keys };
    case 'schema':
      return { schema: shape.schema, keys: shape.keys };
    default:
      return {};
  }
}

/**
 * Returns a message in the form of `messages` of `POST /v1/chat/completions` and `POST /v1/tasks`. Parts keep their
 * order, so the indices in the paths of an upstream's errors are those of the caller's messages and parts.
 */
export function message({ role, parts, name, toolCalls, toolCallId }: ChatMessage): object {
  const [first] = parts;
  const content =
    parts.length === 0 ? null : parts.length === 1 && first?.type === 'text' ? first.text : parts.map(part);
  const tool_calls = toolCalls?.map(({ id, ...call }) => ({ id, type: 'function', function: call }));
  return { role, content, name, tool_calls, tool_call_id: toolCallId };
}

function part(part: Part): object {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.detail === undefined) return { type: part.type, [part.type]: media(part) };
  const { source } = part;
  const url = source.type === 'url' ? source.url : dataUrlOf(source);
  return { type: 'image_url', image_url: { url, detail: part.detail } };
}

/** Returns an image as an ImageInput, or a recording as an AudioInput, of a request (docs/interface.md, D-9). */
function media({ source }: MediaPart): object {
  return source.type === 'url'
    ? { type: 'url', url: source.url }
    : { type: 'base64', data: source.data, mime_type: source.mimeType };
}

import { AssayError } from '../errors.ts';
import { sharedFuel } from '../grammar/fuel.ts';
import { MAX_BODY_BYTES } from '../json/body.ts';
import { MAX_PARTS } from '../json/scan.ts';
import { checkAnswerSchema } from '../tasks/check-answer-schema.ts';
import { VERSION } from '../version.ts';
import type { AnswerShape } from './answer-shape.ts';
import type { TaskBatch } from './batch.ts';
import type { ChatRequest } from './chat.ts';
import type { MediaPart, Part } from './conversation.ts';

/*
 * The routes by which an edge sends its boxes a `TaskBatch` or a `ChatRequest` as it is. They exist only in servers of
 * the same version, so the contract may change with every release.
 */

export const TASKS_PATH = `/internal/${VERSION}/tasks`;
export const CHAT_PATH = `/internal/${VERSION}/chat`;

/**
 * Bounds of the bodies, larger than those of the public routes: a request that these accept must fit here, with the
 * state of a System One request as text and as JSON, and its contents as parts.
 */
export const INTERNAL_LIMITS = { maxBytes: 2 * MAX_BODY_BYTES, maxParts: 2 * MAX_PARTS };

/**
 * Returns a batch that came over the internal route if it is as a handler makes it, which its schema cannot tell: its
 * answer schemas are accepted, and none of its files counts as read. Throws the errors of `checkAnswerSchema`.
 */
export function checkedBatch(batch: TaskBatch): TaskBatch {
  const fuel = sharedFuel();
  const messages = 'messages' in batch.input ? batch.input.messages : [];
  refuseOpened([...batch.media, ...messages.flatMap(({ parts }) => parts)]);
  for (const [i, task] of batch.tasks.entries()) {
    if (task.type !== 'extract') continue;
    checkShape(task.shape, `tasks[${i}].shape.schema`, fuel);
    if (task.present) checkShape(task.present, `tasks[${i}].present.schema`, fuel);
  }
  return batch;
}

/** Returns a chat that came over the internal route if it is as a handler makes it (`checkedBatch`). */
export function checkedChat(chat: ChatRequest): ChatRequest {
  const fuel = sharedFuel();
  refuseOpened(chat.messages.flatMap(({ parts }) => parts));
  if (chat.format.type === 'json') checkShape(chat.format.shape, 'format.shape.schema', fuel);
  for (const [i, { parameters }] of chat.tools?.tools.entries() ?? []) {
    checkAnswerSchema({ schema: parameters, jsonSchemaOnly: true, param: `tools.tools[${i}].parameters`, fuel });
  }
  return chat;
}

function checkShape(shape: AnswerShape, param: string, fuel: ReturnType<typeof sharedFuel>): void {
  if (shape.kind !== 'schema') return;
  const keys = shape.keys ? { keys: shape.keys } : {};
  checkAnswerSchema({ schema: shape.schema, jsonSchemaOnly: true, param, ...keys, fuel });
}

function refuseOpened(parts: readonly (Part | MediaPart)[]): void {
  const opened = parts.find((part) => part.type !== 'text' && part.opened);
  if (!opened) return;
  throw new AssayError('unknown_field', 'A file is opened by the server that answers. Send it without "opened".');
}

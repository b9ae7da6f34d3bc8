import type { TaskBatch } from '../../lib/backend.ts';
import type { ChatMessage } from '../../lib/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { TASK_SEPARATOR, taskPrompt } from '../../lib/prompt/tasks.ts';
import { opensThinking } from './chat-template.ts';
import { encodeSegments, type Segment } from './segment.ts';
import { type TemplateMessage, toTemplateMessages } from './template-message.ts';
import type { TextModel } from './text-model.ts';

/** Longer texts are counted no further than so many times the limit. */
export const COUNTED_LIMITS = 4;

/** Throws `input_too_long` with both counts where a prompt has more than `limit` tokens. */
export function checkLength(tokens: number, limit: number): void {
  if (tokens <= limit) return;
  const count = tokens > COUNTED_LIMITS * limit ? `more than ${COUNTED_LIMITS * limit}` : tokens;
  throw new AssayError(
    'input_too_long',
    `The input is ${count} tokens long and the model reads at most ${limit}. Shorten it, or load a model that reads more, or this one with a larger max_prompt_len where it can.`,
  );
}

/** Each turn takes a token at least, so far too many of them are not even rendered. */
function checkMessages(messages: readonly ChatMessage[], limit: number): void {
  if (messages.length > COUNTED_LIMITS * limit) checkLength(messages.length, limit);
}

/** Token ids of a batch: what all tasks share, and each task's own part up to where the model writes. */
export interface TaskTokens {
  prefix: number[];
  branches: number[][];
}

/**
 * The tokens of a task batch. The cut lies inside the last user turn, before the task's text, and both sides are encoded
 * apart: the prefix is the same tokens whatever the tasks are. Throws `unsupported_modality` and, for a prompt of more than
 * `limit` tokens, `input_too_long`.
 */
export function encodeTasks(model: TextModel, batch: TaskBatch, limit = Number.POSITIVE_INFINITY): TaskTokens {
  refuseMedia(batch);
  const { messages, openMessage, tasks } = taskPrompt(batch);
  checkMessages(messages, limit);
  const rendered = model.template.render([...toTemplateMessages(messages), { role: 'user', content: TASK_MARK }], {
    thinking: false,
  });
  const cut = rendered.findLastIndex(({ trust }) => trust === 'user');
  const last = rendered[cut]!.text;
  // Merged into one turn with what the template cannot take apart, the mark stands at the end of that turn.
  const shared = last.slice(0, last.lastIndexOf(TASK_MARK)) + openMessage + TASK_SEPARATOR;
  const prefix = begun(model, [...rendered.slice(0, cut), { text: shared, trust: 'user' }]);
  checkLength(prefix.length, limit);
  const tail = rendered.slice(cut + 1);
  const branches = tasks.map((task) => {
    const branch = encodeSegments(model.tokenizer, [{ text: task, trust: 'user' }, ...tail], prefix);
    // Each task is answered as if it had been sent alone, so each alone has to fit.
    checkLength(prefix.length + branch.length, limit);
    return branch;
  });
  return { prefix, branches };
}

/** The messages are joined to one text below, so what is no text has to be found here. */
function refuseMedia({ input, media }: TaskBatch): void {
  toTemplateMessages([...('messages' in input ? input.messages : []), { role: 'user', parts: media }]);
}

/** Stands for the open turn and the task while the template is rendered; merging keeps it at the end of its turn. */
const TASK_MARK = '\uE002';

export interface ChatTokens {
  ids: number[];
  /** Whether the model goes on inside a reasoning block that the prompt opened. */
  thinking: boolean;
}

/**
 * The tokens of a chat. `thinking: false` for answers that a grammar bounds. Throws `unsupported_modality` and, for a prompt of
 * more than `limit` tokens, `input_too_long`.
 */
export function encodeChat(
  model: TextModel,
  messages: readonly ChatMessage[],
  { thinking, limit = Number.POSITIVE_INFINITY }: { thinking?: false; limit?: number } = {},
): ChatTokens {
  const rendered: TemplateMessage[] = toTemplateMessages(messages);
  checkMessages(messages, limit);
  const segments = model.template.render(rendered, thinking === false ? { thinking } : {});
  const ids = begun(model, segments);
  checkLength(ids.length, limit);
  return { ids, thinking: opensThinking(segments) };
}

/** A template writes its begin token itself; for a model without a template it is added. */
function begun({ tokenizer, template }: TextModel, segments: readonly Segment[]): number[] {
  const begin = template.stops.length > 0 ? tokenizer.begin : null;
  return begin === null
    ? encodeSegments(tokenizer, segments)
    : [begin, ...encodeSegments(tokenizer, segments, [begin])];
}

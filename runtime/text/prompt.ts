import { at } from '../../lib/at.ts';
import type { Task, TaskBatch, Tool } from '../../lib/backend.ts';
import type { ChatMessage } from '../../lib/contract/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { longerThanContext, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import { TASK_SEPARATOR, taskPrompt, taskText } from '../../lib/prompt/tasks.ts';
import { encodeSegments, type Segment } from './segment.ts';
import { opensThinking } from './template/chat-template.ts';
import { isToolUse, type TemplateMessage, toTemplateMessages } from './template/template-message.ts';
import type { TextModel } from './text-model.ts';
import { withToolFields } from './tools/tool-format.ts';

/**
 * Multiple of the prompt limit up to which tokens are counted. For a longer text, the error message states this number
 * with "more than".
 */
export const COUNTED_LIMITS = 4;

/**
 * Throws `input_too_long` if a prompt has more than `limit` tokens (D-18). The message states the number of tokens and
 * the limit, and ends with `advice`.
 */
export function checkLength(tokens: number, limit: number, advice = ''): void {
  if (tokens <= limit) return;
  const counted = tokens > COUNTED_LIMITS * limit ? `more than ${COUNTED_LIMITS * limit}` : tokens;
  throw longerThanContext(limit, `${counted}`, advice);
}

/**
 * Throws `input_too_long` for far too many messages before they are rendered, because each needs at least one token.
 */
function checkMessages(messages: readonly ChatMessage[], limit: number): void {
  if (messages.length > COUNTED_LIMITS * limit) checkLength(messages.length, limit);
}

/**
 * Encodes a batch: the shared prefix at once, and each task's own part, up to the model's answer, when it is wanted.
 */
export interface TaskEncoder {
  prefix: number[];
  /** Returns the token ids of a task. Throws `input_too_long` if the prefix and the task have too many. */
  branch(task: Task): number[];
}

/**
 * Encodes the shared prefix of a task batch. The rendered prompt is split inside the last user message, before the
 * task's text, and both parts are encoded separately, so the prefix has the same tokens whatever the tasks are. Throws
 * `unsupported_modality` for media that the model does not read, `input_too_long` if the prefix has more than `limit`
 * tokens, and `engine_failed` if the chat template fails.
 */
export function taskEncoder(model: TextModel, batch: TaskBatch, limit = Number.POSITIVE_INFINITY): TaskEncoder {
  const reads = model.media?.kind;
  refuseMedia(batch, model);
  const { messages, media, openMessage } = taskPrompt(batch);
  checkMessages(messages, limit);
  const open: ChatMessage = { role: 'user', parts: [...media, { type: 'text', text: TASK_MARK }] };
  const templateMessages = toTemplateMessages([...messages, open], reads);
  const rendered = model.template.render(templateMessages, { thinking: false, media: model.media });
  const cut = rendered.findLastIndex(({ trust }) => trust === 'user');
  const last = at(rendered, cut).text;
  // The template may merge the placeholder with an earlier message; it is then at the end of that message.
  const shared = last.slice(0, last.lastIndexOf(TASK_MARK)) + openMessage + TASK_SEPARATOR;
  const prefix = encodeWithBegin(model, [...rendered.slice(0, cut), { text: shared, trust: 'user' }]);
  checkLength(prefix.length, limit, READ_IN_WINDOWS);
  const tail = rendered.slice(cut + 1);
  return {
    prefix,
    branch(task) {
      const text = taskText(task, task.language ?? batch.language);
      const branch = encodeSegments(model, [{ text, trust: 'user' }, ...tail], prefix);
      // Each task is answered as if it were sent alone (D-26), so each must fit on its own.
      checkLength(prefix.length + branch.length, limit, READ_IN_WINDOWS);
      return branch;
    },
  };
}

/**
 * Throws `unsupported_modality` for media that the model does not read. The error names the first such part in the
 * order in which the parts were sent, which the prompt may change.
 */
function refuseMedia({ input, media }: TaskBatch, model: TextModel): void {
  const messages = [...('messages' in input ? input.messages : []), { role: 'user' as const, parts: media }];
  toTemplateMessages(messages, model.media?.kind, model.mediaRefusal);
}

/**
 * Placeholder for the text of the last user message and the task while the template renders. If the template merges
 * this message with an earlier one, the placeholder is at the end of the merged message.
 */
const TASK_MARK = '\uE002';

export interface ChatTokens {
  ids: number[];
  /** True if the prompt ends inside a reasoning block, which the model continues. */
  thinking: boolean;
}

export interface ChatEncoding {
  /** False to prevent reasoning; true to ask for it; absent: the model decides. */
  thinking?: boolean | undefined;
  /** Level of effort, for a chat template that has levels. */
  effort?: string | undefined;
  /** True if the answer continues the last message. */
  continues?: boolean | undefined;
  /** Tools that the model may call; absent: none. */
  tools?: readonly Tool[] | undefined;
  /** Maximum tokens of the prompt. Default: no limit. */
  limit?: number;
}

/**
 * Encodes a chat. Throws `unsupported_modality` for media that the model does not read, `input_too_long` for more than
 * `limit` tokens, `unsupported_parameter` if the chat template supports no tools or refuses this conversation with
 * tools, `invalid_value` if it refuses the conversation otherwise, and `engine_failed` if it exceeds a limit.
 */
export function encodeChat(
  model: TextModel,
  messages: readonly ChatMessage[],
  { thinking, effort, continues, tools, limit = Number.POSITIVE_INFINITY }: ChatEncoding = {},
): ChatTokens {
  const rendered = withToolFields(toTemplateMessages(messages, model.media?.kind, model.mediaRefusal), messages);
  checkMessages(messages, limit);
  checkTools(model, rendered, tools);
  const segments = model.template.render(rendered, { thinking, effort, continues, tools, media: model.media });
  const ids = encodeWithBegin(model, segments);
  checkLength(ids.length, limit);
  return { ids, thinking: opensThinking(segments, model.template.reasoning, continues) };
}

/**
 * Throws `unsupported_parameter` for tools, calls and their outputs if the model's chat template does not support them.
 */
function checkTools({ template }: TextModel, messages: readonly TemplateMessage[], tools?: readonly Tool[]): void {
  const at = messages.findIndex(isToolUse);
  if ((!tools && at < 0) || template.tools()) return;
  const param = tools ? 'tools' : `messages[${at}].${messages[at]?.toolCalls ? 'tool_calls' : 'role'}`;
  const message =
    'The chat template of the loaded model has no tools, or writes calls in a form that is not supported. Load a model whose template has them (Qwen2.5, Qwen3, Qwen3-Coder, Llama 3, Mistral, Hermes, Granite 3), or ask for JSON with response_format.';
  throw new AssayError('unsupported_parameter', message, { param });
}

/** Encodes a prompt. A template writes the begin token itself; for a model without a template it is added here. */
function encodeWithBegin(model: TextModel, segments: readonly Segment[]): number[] {
  const begin = model.template.stops.length > 0 ? model.tokenizer.begin : null;
  return begin === null ? encodeSegments(model, segments) : [begin, ...encodeSegments(model, segments, [begin])];
}

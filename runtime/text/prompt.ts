import type { Tool } from '../../lib/backend.ts';
import type { ChatMessage } from '../../lib/contract/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { checkLength, checkMessages } from '../../lib/limits/request-size.ts';
import { encodeWithBegin } from './segment.ts';
import { opensThinking } from './template/chat-template.ts';
import { isToolUse, type TemplateMessage, toTemplateMessages } from './template/template-message.ts';
import type { TextModel } from './text-model.ts';
import { withToolFields } from './tools/tool-format.ts';

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
 * tools, `invalid_value` if it refuses the conversation otherwise, and `engine_failed` if it exceeds a limit. Yields
 * between parts, so that other work may run.
 */
export function* encodeChat(
  model: TextModel,
  messages: readonly ChatMessage[],
  { thinking, effort, continues, tools, limit = Number.POSITIVE_INFINITY }: ChatEncoding = {},
): Generator<void, ChatTokens> {
  const rendered = withToolFields(toTemplateMessages(messages, model.media?.kind, model.mediaRefusal), messages);
  checkMessages(messages, limit);
  checkTools(model, rendered, tools);
  const segments = yield* model.template.render(rendered, { thinking, effort, continues, tools, media: model.media });
  yield;
  const ids = yield* encodeWithBegin(model, segments);
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

import type { ChatEvent, TokenLogprob, ToolCallEvent } from '../backend.ts';
import { AssayError } from '../errors.ts';
import type { ChatCompletion, ChatCompletionChunk, ChatLogprobs, ChatUsage } from '../schema/chat-completion.ts';
import type { ChatToolCall, ChatToolCallDelta } from '../schema/chat-tools.ts';

/** Holds the members that every chunk of a stream, and the answer without a stream, have in common. */
export interface CompletionHead {
  id: string;
  /** Seconds since 1970-01-01 UTC. */
  created: number;
  model: string;
}

type Finish = Extract<ChatEvent, { type: 'finish' }>;

/**
 * Builds the answer to a request without `stream` from the chat events after `start`.
 *
 * @throws AssayError `engine_failed` if the events end before `finish`; also every error that `events` throws
 */
export async function completion(head: CompletionHead, events: AsyncIterable<ChatEvent>): Promise<ChatCompletion> {
  let reasoning = '';
  let content = '';
  let logprobs: ChatLogprobs | null = null;
  const calls: ChatToolCall[] = [];
  for await (const event of events) {
    if (event.type === 'reasoning') reasoning += event.text;
    if (event.type === 'content') {
      content += event.text;
      if (event.logprobs) {
        logprobs ??= chatLogprobs([]);
        logprobs.content?.push(...chatLogprobs(event.logprobs).content!);
      }
    }
    if (event.type === 'tool_call') {
      if (event.name !== undefined) calls.push(newCall(head, event.index, event.name));
      const call = calls[event.index];
      if (call) call.function.arguments += event.arguments;
    }
    if (event.type === 'finish') {
      const message = {
        role: 'assistant',
        content: calls.length > 0 && content === '' ? null : content,
        ...(reasoning ? { reasoning_content: reasoning } : {}),
        ...(calls.length > 0 ? { tool_calls: calls } : {}),
      } as const;
      return {
        ...head,
        object: 'chat.completion',
        choices: [{ index: 0, message, ...ending(event, calls.length > 0), logprobs }],
        usage: chatUsage(event),
        metrics: event.metrics,
      };
    }
  }
  throw endedEarly();
}

/**
 * Builds the chunks of a stream from the chat events after `start`: the role, then reasoning, content and tool calls,
 * then one final chunk with the finish reason, usage and metrics (docs/model-api.md, M-17). With `includeUsage`, usage
 * and metrics are in one more chunk, without choices, and all others have `usage: null`, as in OpenAI's API. Throws
 * `engine_failed` if the events end before `finish`.
 */
export async function* completionChunks(
  head: CompletionHead,
  events: AsyncIterable<ChatEvent>,
  includeUsage: boolean,
): AsyncGenerator<ChatCompletionChunk> {
  type Choice = ChatCompletionChunk['choices'][number];
  const whole = { ...head, object: 'chat.completion.chunk' } as const;
  const chunk = (delta: Choice['delta'], rest: Partial<Choice> = {}): ChatCompletionChunk => ({
    ...whole,
    choices: [{ index: 0, delta, finish_reason: null, logprobs: null, ...rest }],
    ...(includeUsage ? { usage: null } : {}),
  });
  let called = false;
  yield chunk({ role: 'assistant' });
  for await (const event of events) {
    if (event.type === 'reasoning') yield chunk({ reasoning_content: event.text });
    if (event.type === 'content') {
      yield chunk({ content: event.text }, event.logprobs ? { logprobs: chatLogprobs(event.logprobs) } : {});
    }
    if (event.type === 'tool_call') {
      called = true;
      yield chunk({ tool_calls: [callDelta(head, event)] });
    }
    if (event.type === 'finish') {
      const finished = chunk({}, ending(event, called));
      const figures = { usage: chatUsage(event), metrics: event.metrics };
      if (!includeUsage) yield { ...finished, ...figures };
      else {
        yield finished;
        yield { ...whole, choices: [], ...figures };
      }
      return;
    }
  }
  throw endedEarly();
}

/**
 * Returns the finish reason: `tool_calls` instead of `stop` if the answer calls tools (docs/model-api.md, M-27).
 * OpenAI's API has no word for an answer that was cut because it repeated itself, so `stop_reason` says that (M-22).
 */
function ending(
  { reason }: Finish,
  called: boolean,
): Pick<ChatCompletion['choices'][number], 'finish_reason' | 'stop_reason'> {
  if (reason === 'repetition') return { finish_reason: 'length', stop_reason: reason };
  return { finish_reason: called && reason === 'stop' ? 'tool_calls' : reason };
}

function newCall(head: CompletionHead, index: number, name: string): ChatToolCall {
  return { id: toolCallId(head.id, index), type: 'function', function: { name, arguments: '' } };
}

function callDelta(head: CompletionHead, { index, name, arguments: text }: ToolCallEvent): ChatToolCallDelta {
  if (name === undefined) return { index, function: { arguments: text } };
  return { index, id: toolCallId(head.id, index), type: 'function', function: { name, arguments: text } };
}

/**
 * Returns the id of a tool call, derived from the id of the answer (`chatcmpl-…` or `resp_…`) and the index of the call
 * among its calls. An edge and its upstream therefore report the same id.
 */
export function toolCallId(answerId: string, index: number): string {
  return `${answerId.replace(/^(chatcmpl-|resp_)/u, 'call_')}-${index}`;
}

function chatUsage({ usage, metrics }: Finish): ChatUsage {
  const { promptTokens, completionTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(metrics.cached_tokens === null ? {} : { prompt_tokens_details: { cached_tokens: metrics.cached_tokens } }),
  };
}

function chatLogprobs(tokens: readonly TokenLogprob[]): ChatLogprobs {
  return { content: tokenLogprobs(tokens), refusal: null };
}

/** Converts the log-probabilities of tokens to the format of OpenAI's APIs. */
export function tokenLogprobs(tokens: readonly TokenLogprob[]): NonNullable<ChatLogprobs['content']> {
  const plain = ({ token, logprob, bytes }: Omit<TokenLogprob, 'top'>) => ({ token, logprob, bytes: [...bytes] });
  return tokens.map((one) => ({ ...plain(one), top_logprobs: one.top.map(plain) }));
}

/** Returns the error `engine_failed` for a backend whose events end before `finish`. */
export function endedEarly(): AssayError {
  return new AssayError('engine_failed', 'The model stopped before its answer was whole. Try again.');
}

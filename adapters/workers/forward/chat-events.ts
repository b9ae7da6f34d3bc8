import { createParser } from 'eventsource-parser';
import * as v from 'valibot';
import type { ChatEvent } from '../../../lib/backend.ts';
import { AssayError } from '../../../lib/errors.ts';
import { asModelId, type ModelId } from '../../../lib/model-id.ts';
import { ChatCompletionChunk, type ChatFinishReason } from '../../../lib/schema/chat-completion.ts';
import { failure, readErrorBody, unreachable } from './upstream-fault.ts';

type FinishReason = v.InferOutput<typeof ChatFinishReason> | 'repetition';

/** Largest event in characters. An event has a chunk of text and its log-probabilities. */
const MOST_CHARACTERS = 1024 * 1024;

/**
 * Converts the bytes of the public chat stream of an upstream of another version to events, each as soon as it has
 * arrived. Throws `timeout` if the stream reports that, and `UpstreamFault` if it reports another error, has an invalid
 * chunk, or ends before its last chunk. Also throws what `bytes` throws.
 */
export async function* chatEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ChatEvent> {
  let started = false;
  let reason: FinishReason | null = null;
  for await (const data of eventData(bytes)) {
    const chunk = parseChunk(data);
    for (const event of deltaEvents(chunk)) {
      started ||= event.type === 'start';
      if (!started) throw unreachable(new Error('the stream does not begin with a role'));
      yield event;
    }
    reason = chunk.choices[0]?.stop_reason ?? chunk.choices[0]?.finish_reason ?? reason;
    if (reason === null || !chunk.usage) continue;
    yield finishEvent(chunk, reason);
    // Nothing follows but `[DONE]`.
    return;
  }
  throw unreachable(new Error('the stream ended before its answer was whole'));
}

/** Yields the data of each server-sent event in a stream of bytes. */
export async function* eventData(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const data: string[] = [];
  const parser = createParser({
    onEvent: (event) => data.push(event.data),
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw unreachable(error);
    },
    maxBufferSize: MOST_CHARACTERS,
  });
  const decoder = new TextDecoder();
  for await (const chunk of bytes) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* data.splice(0);
  }
}

function* deltaEvents({ model, choices: [choice] }: ChatCompletionChunk): Generator<ChatEvent> {
  if (!choice) return;
  const { delta, logprobs } = choice;
  if (delta.role !== undefined) yield { type: 'start', model: modelOf(model) };
  if (delta.reasoning_content !== undefined) yield { type: 'reasoning', text: delta.reasoning_content };
  if (delta.content !== undefined) {
    const tokens = logprobs?.content?.map(({ top_logprobs, ...token }) => ({
      ...withBytes(token),
      top: top_logprobs.map(withBytes),
    }));
    yield { type: 'content', text: delta.content, ...(tokens ? { logprobs: tokens } : {}) };
  }
  for (const { index, function: call } of delta.tool_calls ?? []) {
    yield {
      type: 'tool_call',
      index,
      ...(call.name === undefined ? {} : { name: call.name }),
      arguments: call.arguments,
    };
  }
}

/** Returns the event of the chunk with the usage. The finish reason is in a chunk before it, as in OpenAI's API. */
function finishEvent({ usage, metrics }: ChatCompletionChunk, finish: FinishReason): ChatEvent {
  if (!usage || !metrics) throw unreachable(new Error('the last chunk has no usage or metrics'));
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = usage;
  // The tool calls before this chunk already tell the caller that the answer is one of tool calls.
  const reason = finish === 'tool_calls' ? 'stop' : finish;
  return { type: 'finish', reason, usage: { promptTokens, completionTokens }, metrics };
}

function parseChunk(data: string): ChatCompletionChunk {
  const error = readErrorBody(data);
  if (error) throw failure(new AssayError(error.code, error.message));
  try {
    return v.parse(ChatCompletionChunk, JSON.parse(data));
  } catch (cause) {
    throw unreachable(cause);
  }
}

function modelOf(text: string): ModelId {
  const id = asModelId(text);
  if (!id) throw unreachable(new Error('the stream names no model id'));
  return id;
}

function withBytes<T extends { token: string; bytes: number[] | null }>(token: T): T & { bytes: number[] } {
  return { ...token, bytes: token.bytes ?? [...new TextEncoder().encode(token.token)] };
}

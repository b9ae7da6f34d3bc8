import * as v from 'valibot';
import { at } from '../../../lib/at.ts';
import { BatchAnswer, type TaskBatch } from '../../../lib/contract/batch.ts';
import { ChatEvent } from '../../../lib/contract/chat.ts';
import { AssayError } from '../../../lib/errors.ts';
import { eventData } from './chat-events.ts';
import { failure, readErrorBody, unreachable } from './upstream-fault.ts';

/* Reads what a box of the edge's version answers over the internal route (lib/contract/internal.ts). */

/** Returns the answer in a body. Throws `UpstreamFault` unless it is valid and answers each task of the batch. */
export function readBatchAnswer(text: string, batch: TaskBatch): BatchAnswer {
  try {
    const answer = v.parse(BatchAnswer, JSON.parse(text));
    if (answer.answers.length !== batch.tasks.length) throw new Error('there are not as many answers as tasks');
    for (const [i, task] of batch.tasks.entries()) {
      const { name, json, optionLogprobs } = at(answer.answers, i);
      if (name !== task.name) throw new Error(`there is no answer to ${task.name}`);
      const options = batch.probabilities && task.type === 'decide' ? task.options?.length : undefined;
      if (options !== optionLogprobs?.length) throw new Error('there are not as many probabilities as options');
      // The text becomes a part of the response's.
      JSON.parse(json);
    }
    return answer;
  } catch (cause) {
    throw unreachable(cause);
  }
}

/**
 * Yields the events in the bytes of a stream, each as soon as it has arrived. Throws `timeout` if the stream reports
 * that, and `UpstreamFault` if it reports another error, does not begin with `start`, or ends before `finish`. Also
 * throws what `bytes` throws.
 */
export async function* readChatEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ChatEvent> {
  let started = false;
  for await (const data of eventData(bytes)) {
    const error = readErrorBody(data);
    if (error) throw failure(new AssayError(error.code, error.message));
    const event = parseEvent(data);
    if ((event.type === 'start') === started) throw unreachable(new Error('the stream does not begin with its start'));
    started = true;
    yield event;
    if (event.type === 'finish') return;
  }
  throw unreachable(new Error('the stream ended before its answer was whole'));
}

function parseEvent(data: string): ChatEvent {
  try {
    return v.parse(ChatEvent, JSON.parse(data));
  } catch (cause) {
    throw unreachable(cause);
  }
}

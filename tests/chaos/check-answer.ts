import { createParser } from 'eventsource-parser';
import * as v from 'valibot';
import { ChatCompletionChunk } from '../../lib/schema/chat-completion.ts';
import { DownloadEvent } from '../../lib/schema/model-operations.ts';
import { ResponsesEvent } from '../../lib/schema/responses-response.ts';
import { answerProblems } from '../contract/bodies.ts';
import type { Operation } from './request.ts';
import type { Outcome } from './send.ts';

type Answered = Extract<Outcome, { kind: 'answered' }>;

/** Returns what is wrong with an answer; empty when it is a valid answer or a documented error. */
export function problemsOf({ method, path }: Operation, { status, type, text }: Answered): string[] {
  const problems =
    type === 'text/event-stream' ? streamProblems(path, text) : bodyProblems(method, path, status, type, text);
  // Every fault of these runs has a name of its own.
  if (text.includes('"internal_error"')) problems.push('an internal error');
  return problems;
}

function bodyProblems(method: string, path: string, status: number, type: string, text: string): string[] {
  const body = parsed(text);
  return body === undefined ? ['the body is no JSON'] : answerProblems(method, path, status, type, body);
}

/** Describes the events of a stream: their schema, and which one is the last. */
interface Stream {
  schema: v.GenericSchema;
  isEnd(event: unknown): boolean;
}

const CHAT = '/v1/chat/completions';
const DOWNLOAD: Stream = {
  schema: DownloadEvent,
  isEnd: (event) => v.is(v.object({ status: v.literal('success') }), event),
};
/** Streams by their path; all others are of downloads. */
const STREAMS = new Map<string, Stream>([
  [
    CHAT,
    {
      schema: ChatCompletionChunk,
      isEnd: (event) => v.is(ChatCompletionChunk, event) && event.choices[0]?.finish_reason !== null,
    },
  ],
  [
    '/v1/responses',
    {
      schema: ResponsesEvent,
      isEnd: (event) =>
        v.is(v.object({ type: v.picklist(['response.completed', 'response.incomplete', 'error']) }), event),
    },
  ],
]);

/** A stream has valid events and ends exactly once: with its result, or with an error as its last event. */
function streamProblems(path: string, text: string): string[] {
  const events: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(data) });
  parser.feed(text);
  const stream = STREAMS.get(path) ?? DOWNLOAD;
  const last = events.at(-1) ?? '';
  const failed = (parsed(last) as { error?: unknown } | undefined)?.error !== undefined;
  if (failed) {
    const problems = answerProblems('POST', path, 500, 'application/json', parsed(last));
    return [...problems, ...events.slice(0, -1).flatMap((data) => eventProblems(stream, data))];
  }
  if (path === CHAT) {
    if (last !== '[DONE]') return [`the stream ends with ${last.slice(0, 100)}`];
    events.pop();
  }
  const ends = events.filter((data) => stream.isEnd(parsed(data)));
  if (ends.length !== 1 || ends[0] !== events.at(-1)) return [`the stream has ${ends.length} ends`];
  return events.flatMap((data) => eventProblems(stream, data));
}

function eventProblems({ schema }: Stream, data: string): string[] {
  const read = v.safeParse(schema, parsed(data));
  return read.success ? [] : [`${data.slice(0, 100)}: ${read.issues[0].message}`];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

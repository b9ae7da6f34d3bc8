import { createParser } from 'eventsource-parser';
import * as v from 'valibot';
import { ChatCompletionChunk } from '../../lib/schema/chat-completion.ts';
import { DownloadEvent } from '../../lib/schema/model-operations.ts';
import { answerProblems } from '../contract/bodies.ts';
import type { Operation } from './operations.ts';
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

/** A stream has valid events and ends exactly once: with its result, or with an error as its last event. */
function streamProblems(path: string, text: string): string[] {
  const events: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(data) });
  parser.feed(text);
  const chat = path === '/v1/chat/completions';
  const last = events.at(-1) ?? '';
  const failed = (parsed(last) as { error?: unknown } | undefined)?.error !== undefined;
  if (failed) {
    const problems = answerProblems('POST', path, 500, 'application/json', parsed(last));
    return [...problems, ...events.slice(0, -1).flatMap((data) => eventProblems(chat, data))];
  }
  if (chat) {
    if (last !== '[DONE]') return [`the stream ends with ${last.slice(0, 100)}`];
    events.pop();
  }
  const ends = events.filter((data) => isEnd(chat, parsed(data)));
  if (ends.length !== 1 || ends[0] !== events.at(-1)) return [`the stream has ${ends.length} ends`];
  return events.flatMap((data) => eventProblems(chat, data));
}

function isEnd(chat: boolean, event: unknown): boolean {
  if (chat) return v.is(ChatCompletionChunk, event) && event.choices[0]?.finish_reason !== null;
  return v.is(v.object({ status: v.literal('success') }), event);
}

function eventProblems(chat: boolean, data: string): string[] {
  const read = v.safeParse(chat ? ChatCompletionChunk : DownloadEvent, parsed(data));
  return read.success ? [] : [`${data.slice(0, 100)}: ${read.issues[0].message}`];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

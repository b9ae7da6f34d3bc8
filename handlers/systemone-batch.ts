import { at } from '../lib/at.ts';
import type { BatchAnswer, TaskBatch } from '../lib/backend.ts';
import { AssayError, type ErrorCode } from '../lib/errors.ts';
import { readJson } from '../lib/json/body.ts';
import { membersOf, splitItems } from '../lib/json/members.ts';
import { type JsonValue, sourceText } from '../lib/json/parse.ts';
import { questionAnswers } from '../lib/questions/question-answers.ts';
import { DEFAULT_SETTINGS, settingsOf, textOf } from '../lib/questions/settings.ts';
import { batchOfSystemOne, systemOneBody } from '../lib/questions/systemone.ts';
import { mapInOrder } from '../lib/rows/map-in-order.ts';
import { RetryLater } from '../lib/rows/retry-later.ts';
import { SystemOneBatchRequest } from '../lib/schema/systemone-batch.ts';
import { validate } from '../lib/validation/validate.ts';
import { checkRight, noteModel } from './auth.ts';
import { callOf } from './call.ts';
import { compiled } from './compiled.ts';
import type { AppContext, AppHandler, Services } from './context.ts';
import { errorBody } from './error-response.ts';
import { eventStream, LINES } from './event-stream.ts';
import { checkEvidence, wishesByTask, wishesOf, withEvidence } from './evidence.ts';
import { checkAsked } from './formats.ts';

/** States that are asked about at once: enough to fill the engine's steps, and few enough to leave room for others. */
const INFLIGHT = 8;

/** Errors that concern all states, so they are the answer to the whole request if the first state meets them. */
const OF_ALL: ReadonlySet<ErrorCode> = new Set([
  'model_not_found',
  'model_not_loaded',
  'model_not_allowed',
  'rate_limited',
  'overloaded',
]);

/** Validates a body, and converts its questions to a batch without a state. */
export function readStates(json: JsonValue) {
  const { states, ...request } = validate(SystemOneBatchRequest, json);
  const shared = batchOfSystemOne({ ...request, state: '' }, sourceText(json) ?? '{}');
  checkAsked(shared);
  return { states, request, shared, evidence: wishesByTask(shared, wishesOf(request.questions)) };
}

/**
 * Handles `POST /v1/systemone/batch`: asks the same questions about many states, each as if it had been sent alone. A
 * state that cannot be answered gets an error in its place. With `Accept: application/x-ndjson`, each answer is sent as
 * a line once its turn comes, and the usage as the last line.
 */
export function systemOneBatch(services: Services): AppHandler {
  return async (c) => {
    const { quota, aliases, clock } = services;
    const json = await readJson(c.req.raw, { contentType: 'optional', ...c.get('body') });
    const text = sourceText(json) ?? '{}';
    // The questions of all states are the same, so their schemas are compiled once.
    const { states, request, shared, evidence } = await compiled(c, text, () => readStates(json));
    const key = c.get('key');
    if (key && states.length > 1) await quota?.take(key, { requests: states.length - 1 });
    const settings = settingsOf(request, { ...DEFAULT_SETTINGS, ...services.questions });
    if (shared.model !== undefined && aliases.has(shared.model)) delete shared.model;
    if (shared.model !== undefined) checkRight(c, shared.model);
    const sent = splitItems(membersOf(text).get('states') ?? '[]');
    const leaving = new AbortController();
    const signal = AbortSignal.any([c.req.raw.signal, leaving.signal]);
    const later = new RetryLater(clock);
    const answer = async (index: number): Promise<BatchAnswer> => {
      const state = at(states, index);
      const own = typeof state === 'string' ? {} : { state: at(sent, index) };
      const batch: TaskBatch = { ...shared, input: { context: textOf(state), ...own } };
      if (evidence) checkEvidence(batch, evidence);
      const run = (one: TaskBatch) =>
        services.backend.runTasks(one, callOf(c, quota, { signal, keepAlive: request.keep_alive }));
      const first = await run(batch);
      if (!evidence) return first;
      return await withEvidence(batch, first, evidence, (one) => later.run(() => run(one), signal));
    };
    const usage = { input_tokens: 0, output_tokens: 0 };
    const bodyOf = async (index: number): Promise<string> => {
      try {
        // A server that is busy at the first state refuses the request; for the others, it is waited for.
        const answered = index === 0 ? await answer(0) : await later.run(() => answer(index), signal);
        noteModel(c, answered.model);
        usage.input_tokens += answered.usage.promptTokens;
        usage.output_tokens += answered.usage.completionTokens;
        const answers = questionAnswers(shared, answered);
        return systemOneBody({ ...request, state: at(states, index) }, answers, settings);
      } catch (error) {
        signal.throwIfAborted();
        if (index === 0 && error instanceof AssayError && OF_ALL.has(error.code)) throw error;
        return JSON.stringify({ error: errorBody(error, 'systemone').error });
      }
    };
    // The first state is asked about alone: it finds what concerns all, and what they share is cached after it.
    const first = await bodyOf(0);
    async function* bodies(): AsyncGenerator<string> {
      yield first;
      yield* mapInOrder([...states.keys()].slice(1), { inflight: INFLIGHT, window: states.length }, bodyOf);
    }
    if (acceptsLines(c)) {
      return eventStream(c, services, linesOf(bodies(), usage), leaving, failure, LINES);
    }
    const results: string[] = [];
    for await (const body of bodies()) results.push(body);
    return new Response(`{"results":[${results.join(',')}],"total_usage":${JSON.stringify(usage)}}`, {
      headers: { 'content-type': 'application/json' },
    });
  };
}

function acceptsLines(c: AppContext): boolean {
  return /\bapplication\/(x-ndjson|jsonl|x-jsonlines)\b/i.test(c.req.header('accept') ?? '');
}

async function* linesOf(bodies: AsyncIterable<string>, usage: object): AsyncGenerator<string> {
  for await (const body of bodies) yield `${body}\n`;
  yield `${JSON.stringify({ total_usage: usage })}\n`;
}

const failure = (error: unknown): string => `${JSON.stringify(errorBody(error, 'systemone'))}\n`;

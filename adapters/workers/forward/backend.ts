import * as v from 'valibot';
import { CACHE_SCOPE_HEADER, CALLER_HEADER, KEEP_ALIVE_HEADER, PRIORITY_HEADER } from '../../../handlers/call.ts';
import type {
  BatchAnswer,
  Call,
  ChatEvent,
  ChatRequest,
  InferenceBackend,
  ListedModel,
  TaskBatch,
  ToolUse,
  Usage,
} from '../../../lib/backend.ts';
import type { Clock } from '../../../lib/clock.ts';
import { CHAT_PATH, TASKS_PATH } from '../../../lib/contract/internal.ts';
import { AssayError } from '../../../lib/errors.ts';
import { sizeOfRequest } from '../../../lib/limits/request-size.ts';
import { type ModelId, parseModelId } from '../../../lib/model-id.ts';
import { noModelLoaded, unknownModel } from '../../../lib/models/unknown-model.ts';
import { chatPrefix, hash64, taskPrefix } from '../../../lib/prompt/affinity.ts';
import { MODEL_STATUSES, ModelCapabilities, ModelContract, ModelStatus } from '../../../lib/schema/model-list.ts';
import type { AttemptLog, AttemptRecord } from '../log.ts';
import type { Fleet } from '../upstreams/fleet.ts';
import { askHealth } from '../upstreams/health.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { chatEvents } from './chat-events.ts';
import { readBatchAnswer, readChatEvents } from './internal.ts';
import { readChunks } from './read-chunks.ts';
import { message, publicTasksRequest, taskAnswer } from './task-answer.ts';
import { type Attempt, RetryBudget, type Tries, tryUpstreams, verdict } from './try-upstreams.ts';
import { askUpstream, readUpstream, type UpstreamClientDeps, type UpstreamRequest } from './upstream-client.ts';
import { OtherVersion, UpstreamFault, unreachable } from './upstream-fault.ts';

export interface Deadlines {
  /** Timeout in milliseconds until a chat's answer must begin, and until the answer to tasks must be complete. */
  answerMs: number;
  /** Milliseconds without a byte of a stream after which the upstream counts as hung. */
  silenceMs: number;
  /** Timeout in milliseconds for an upstream's model list. */
  listMs: number;
  /** Milliseconds after which an upstream that has a request is asked whether it is well; absent: it is not. */
  aliveMs?: number;
}

export interface ForwardingDeps extends UpstreamClientDeps {
  clock: Clock;
  /** Called when an attempt at an upstream has ended. */
  log: AttemptLog;
}

/**
 * Default deadlines. Cloudflare's proxy closes a silent connection after 100 s, so the edge gives up before and can
 * still send an error.
 */
export const DEADLINES: Deadlines = { answerMs: 90_000, silenceMs: 15_000, listMs: 5_000, aliveMs: 15_000 };

const LOOK_AGAIN_MS = 1_000;
const HUNG = 'The box stopped responding while it had this request. Try again.';

/** Milliseconds until an upstream of another version is asked over the internal route again. */
const OTHER_VERSION_MS = 60_000;

/**
 * Number of upstreams that are asked for their model list. In a larger fleet, the other upstreams contribute only the
 * model that their health reports as loaded.
 */
const MOST_LISTED = 6;

/**
 * Answers requests by forwarding them to upstreams. Requests are already validated. If an upstream still refuses one,
 * throws its error. An upstream of the same version gets the batch or chat itself, over the internal route. One of
 * another version gets tasks and chats in their public formats, and no requests for probabilities: a public format
 * cannot say all that these ask.
 */
export class ForwardingBackend implements InferenceBackend {
  readonly #fleet: Fleet;
  readonly #deps: ForwardingDeps;
  readonly #deadlines: Deadlines;
  readonly #retries: Pick<Tries<unknown>, 'budget' | 'now'>;
  /** Times until which the named upstreams count as of another version. */
  readonly #otherVersion = new Map<string, number>();

  constructor(fleet: Fleet, deps: ForwardingDeps, deadlines = DEADLINES) {
    this.#fleet = fleet;
    this.#deps = deps;
    this.#deadlines = deadlines;
    this.#retries = { budget: new RetryBudget(), now: () => deps.clock.now() };
  }

  async runTasks(batch: TaskBatch, call: Call): Promise<BatchAnswer> {
    const model = batch.model ?? this.#fleet.activeModel(call.allows);
    if (model === undefined) throw noModelLoaded('Load one on a box with POST /boxes/<name>/load.');
    // The public format needs a name.
    const named = { ...batch, model };
    const upstreams = this.#upstreams(model, call.session ?? taskPrefix(named));
    await call.admit(sizeOfRequest(batch).tokens, model);
    const body = JSON.stringify(this.#mayChoose(call) ? batch : named);
    const answers = tryUpstreams<BatchAnswer>(upstreams, {
      ...this.#retries,
      attempt: (upstream) => this.#attempt(upstream, 'tasks', call),
      ask: (upstream) => this.#whileAlive(upstream, call, (watched) => this.#answer(upstream, named, body, watched)),
      isOutput: () => true,
      isLast: () => true,
    });
    try {
      for await (const answer of answers) {
        await call.recount?.(tokensOf(answer.usage));
        return answer;
      }
    } catch (error) {
      if (isOverloaded(error)) await call.recount?.(0);
      throw error;
    }
    throw unreachable(new Error('no answer')).error;
  }

  async *chat(request: ChatRequest, call: Call): AsyncGenerator<ChatEvent> {
    const upstreams = this.#upstreams(request.model, call.session ?? chatPrefix(request));
    await call.admit(sizeOfRequest(request).tokens, request.model ?? this.#fleet.activeModel(call.allows));
    const body = JSON.stringify(request);
    const events = tryUpstreams<ChatEvent>(upstreams, {
      ...this.#retries,
      attempt: (upstream) => this.#attempt(upstream, 'chat', call),
      ask: (upstream) => this.#whileAlive(upstream, call, (watched) => this.#events(upstream, request, body, watched)),
      isOutput: ({ type }) => type !== 'start',
      isLast: ({ type }) => type === 'finish',
    });
    let started = false;
    try {
      for await (const event of events) {
        // Each upstream that is tried sends a `start`. The caller gets only the first one.
        if (event.type === 'finish') await call.recount?.(tokensOf(event.usage));
        if (event.type !== 'start' || !started) yield event;
        started ||= event.type === 'start';
      }
    } catch (error) {
      if (isOverloaded(error)) await call.recount?.(0);
      throw error;
    }
  }

  async listModels(call: Call): Promise<readonly ListedModel[]> {
    const known = this.#fleet.status().filter(({ state }) => state !== 'open');
    const asked = known.slice(0, MOST_LISTED);
    const lists = await Promise.all(asked.map(({ upstream }) => this.#list(upstream, call)));
    const faults = lists.filter((list) => list instanceof UpstreamFault);
    if (faults.length === lists.length) throw verdict(faults);
    return mergeModels(known, lists.filter((list) => Array.isArray(list)).flat());
  }

  /** Tells whether the box may choose the model of a request without one: the caller may use all that are loaded. */
  #mayChoose({ allows = () => true }: Call): boolean {
    return this.#fleet.status().every(({ upstream, active = upstream.models }) => active.every(allows));
  }

  /** Returns the upstreams to try for a model, best first. Throws `model_not_found` if none is configured for it. */
  #upstreams(model: string | undefined, shared: string): Upstream[] {
    if (model !== undefined && !this.#fleet.serves(model)) {
      const upstreams = this.#fleet.status();
      // While an upstream's health is unknown, all models configured for it count as loaded.
      const served = upstreams.flatMap(({ upstream, active }) => active ?? upstream.models);
      const known = upstreams.flatMap(({ upstream }) => upstream.models);
      throw unknownModel(model, { served: [...new Set(served)], known });
    }
    return this.#fleet.candidates(model, hash64(shared));
  }

  /** Begins an attempt at an upstream. It counts as running on the upstream until it ends; then it is logged. */
  #attempt<T extends BatchAnswer | ChatEvent>(
    upstream: Upstream,
    kind: AttemptRecord['kind'],
    { requestId }: Call,
  ): Attempt<T> {
    const { clock, log } = this.#deps;
    const end = this.#fleet.begin(upstream);
    const begin = clock.now();
    let seen: Pick<AttemptRecord, 'usage' | 'metrics'> = {};
    return {
      saw(chunk) {
        if (!('usage' in chunk)) return;
        seen = { usage: chunk.usage, ...('metrics' in chunk ? { metrics: chunk.metrics } : {}) };
      },
      end(outcome, error) {
        end(outcome);
        const ms = clock.now() - begin;
        log({
          requestId,
          kind,
          upstream: upstream.name,
          outcome,
          ms,
          ...seen,
          ...(error === undefined ? {} : { error }),
        });
      },
    };
  }

  /**
   * Yields what `ask` yields. Throws `UpstreamFault` if the upstream says twice in a row, at the next two looks, that
   * it is not well, or nothing: it hangs, and another one may answer before the deadline.
   */
  async *#whileAlive<T>(upstream: Upstream, call: Call, ask: (watched: Call) => AsyncIterable<T>): AsyncGenerator<T> {
    const { clock, fetch } = this.#deps;
    const { aliveMs } = this.#deadlines;
    if (aliveMs === undefined) return yield* ask(call);
    const hung = new AbortController();
    const ended = new AbortController();
    const watch = async () => {
      for (let ill = 0; ; ) {
        await clock.sleep(ill > 0 ? LOOK_AGAIN_MS : aliveMs, ended.signal);
        if (ended.signal.aborted) return;
        ill = await askHealth(upstream, fetch).then(
          () => 0,
          () => ill + 1,
        );
        if (ill > 1) return hung.abort(new UpstreamFault(new AssayError('timeout', HUNG), true));
      }
    };
    void watch();
    try {
      yield* ask({ ...call, signal: AbortSignal.any([call.signal, hung.signal]) });
    } finally {
      ended.abort();
    }
  }

  async *#answer(upstream: Upstream, batch: TaskBatch, body: string, call: Call): AsyncGenerator<BatchAnswer> {
    const ask = (path: string, body: string) =>
      readUpstream(upstream, this.#request(call, { method: 'POST', path, body }), this.#deps);
    const answer = await this.#internally(upstream, () => ask(TASKS_PATH, body));
    if (answer) yield readBatchAnswer(answer.text, batch);
    else if (!isPublic(batch)) throw new OtherVersion();
    else yield taskAnswer(await ask('/v1/tasks', publicTasksRequest(batch)), batch);
  }

  async *#events(upstream: Upstream, chat: ChatRequest, body: string, call: Call): AsyncGenerator<ChatEvent> {
    const ask = (path: string, body: string) =>
      askUpstream(upstream, this.#request(call, { method: 'POST', path, body }), this.#deps);
    const internal = await this.#internally(upstream, () => ask(CHAT_PATH, body));
    const response = internal ?? (await ask('/v1/chat/completions', chatBody(chat)));
    if (!response.body) throw unreachable(new Error('an answer without a body'));
    const { clock } = this.#deps;
    const { silenceMs } = this.#deadlines;
    const bytes = readChunks(response.body, { clock, silenceMs, signal: call.signal });
    yield* internal ? readChatEvents(bytes) : chatEvents(bytes);
  }

  /** Returns the response over the internal route; undefined if the upstream has another version and thus no such. */
  async #internally<T>(upstream: Upstream, ask: () => Promise<T>): Promise<T | undefined> {
    const { clock } = this.#deps;
    if (clock.now() < (this.#otherVersion.get(upstream.name) ?? 0)) return undefined;
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof OtherVersion)) throw error;
      this.#otherVersion.set(upstream.name, clock.now() + OTHER_VERSION_MS);
      return undefined;
    }
  }

  #request(
    { requestId, trace, signal, priority, caller, cacheScope, keepAliveMs }: Call,
    request: Pick<UpstreamRequest, 'method' | 'path' | 'body'>,
  ): UpstreamRequest {
    return {
      ...request,
      headers: {
        // Never sends `interactive`, the default: a box whose key is for batch requests only would refuse it.
        ...(priority === 'batch' ? { [PRIORITY_HEADER]: priority } : {}),
        ...(caller === undefined ? {} : { [CALLER_HEADER]: caller }),
        ...(cacheScope === undefined ? {} : { [CACHE_SCOPE_HEADER]: cacheScope }),
        ...(keepAliveMs === undefined ? {} : { [KEEP_ALIVE_HEADER]: keepAliveText(keepAliveMs) }),
      },
      requestId,
      ...(trace ? { trace } : {}),
      signal,
      deadlineMs: this.#deadlines.answerMs,
    };
  }

  /** Returns the models that an upstream lists, or the fault if it gave no valid list. */
  async #list(upstream: Upstream, { requestId, trace, signal }: Call): Promise<ListedModel[] | UpstreamFault> {
    try {
      const deadlineMs = this.#deadlines.listMs;
      const request = { method: 'GET', path: '/v1/models', requestId, ...(trace ? { trace } : {}), signal, deadlineMs };
      const { text } = await readUpstream(upstream, request, this.#deps);
      const { data } = v.parse(UpstreamModels, JSON.parse(text));
      return data.map(({ id, created, ...facts }) => ({
        ...facts,
        id: parseModelId(id),
        // 0 means that the upstream does not know the time.
        ...(created ? { created } : {}),
      }));
    } catch (error) {
      return error instanceof UpstreamFault ? error : unreachable(error);
    }
  }
}

function tokensOf({ promptTokens, completionTokens }: Usage): number {
  return promptTokens + completionTokens;
}

/** Formats a time as `keep_alive` has it: a duration, or -1 for no limit. */
function keepAliveText(ms: number): string {
  return Number.isFinite(ms) ? `${ms}ms` : '-1';
}

function isOverloaded(error: unknown): boolean {
  return error instanceof AssayError && error.code === 'overloaded';
}

/** Tells whether the public format of tasks says all of a batch. */
function isPublic({ probabilities, tasks }: TaskBatch): boolean {
  return !probabilities && !tasks.some((task) => task.type === 'extract' && (task.present || task.verbatim));
}

interface KnownUpstream {
  upstream: Upstream;
  active: readonly string[] | undefined;
}

/** Describes the members of an upstream's model list that the edge reads. Older servers do not send `created`. */
const UpstreamModels = v.object({
  data: v.array(
    v.object({
      id: v.string(),
      status: ModelStatus,
      created: v.exactOptional(v.number()),
      capabilities: v.exactOptional(ModelCapabilities),
      contract: v.exactOptional(ModelContract),
    }),
  ),
});

/**
 * Returns the edge's model list: of the models that upstreams listed, those that some upstream is configured for, each
 * with the best status (`MODEL_STATUSES` is sorted from best to worst) and the earliest `created`. A model that an
 * upstream's health reports as loaded is `active`, even if no upstream listed it.
 */
function mergeModels(upstreams: readonly KnownUpstream[], listed: readonly ListedModel[]): ListedModel[] {
  const best = new Map<ModelId, ListedModel>();
  const served = new Set(upstreams.flatMap(({ upstream }) => upstream.models));
  const active = upstreams.flatMap(({ upstream, active }) =>
    upstream.models.filter((model) => active?.includes(model)),
  );
  const all: ListedModel[] = [...listed, ...active.map((id) => ({ id, status: 'active' as const }))];
  for (const model of all) {
    if (served.has(model.id)) best.set(model.id, merged(best.get(model.id) ?? model, model));
  }
  return [...best.values()];
}

/**
 * Merges two entries of one model: returns the better status, the earlier `created`, and what either says of the model.
 */
function merged(one: ListedModel, other: ListedModel): ListedModel {
  const { id, status, created = one.created, capabilities = one.capabilities, contract = one.contract } = other;
  return {
    id,
    ...(capabilities ? { capabilities } : {}),
    ...(contract ? { contract } : {}),
    status: rank(status) < rank(one.status) ? status : one.status,
    ...(created === undefined ? {} : { created: Math.min(created, one.created ?? created) }),
  };
}

function rank(status: ModelStatus): number {
  return MODEL_STATUSES.indexOf(status);
}

/**
 * Returns the JSON text of the body for an upstream's `POST /v1/chat/completions`. Always requests a stream, even if
 * the caller did not: the edge then sees chunks and metrics as they arrive.
 */
export function chatBody(request: ChatRequest): string {
  const { model, messages, maxTokens, temperature, topP, seed, stop, topLogprobs } = request;
  return JSON.stringify({
    model,
    messages: messages.map(message),
    max_completion_tokens: maxTokens,
    temperature,
    top_p: topP,
    seed,
    stop: stop.length > 0 ? stop : undefined,
    presence_penalty: request.presencePenalty || undefined,
    frequency_penalty: request.frequencyPenalty || undefined,
    ...(topLogprobs === undefined ? {} : { logprobs: true, top_logprobs: topLogprobs }),
    response_format: format(request.format),
    cache_salt: request.cacheSalt,
    ...(request.tools ? toolFields(request.tools) : {}),
    ...(request.reasoning ? reasoningFields(request.reasoning) : {}),
    continue_final_message: request.continues,
    stream: true,
    stream_options: { include_usage: true },
  });
}

function reasoningFields({ enabled, effort }: NonNullable<ChatRequest['reasoning']>): object {
  return effort === undefined ? { enable_thinking: enabled } : { reasoning_effort: effort };
}

function toolFields({ tools, choice, parallel }: ToolUse): object {
  return {
    tools: tools.map((tool) => ({ type: 'function', function: tool })),
    tool_choice: typeof choice === 'string' ? choice : { type: 'function', function: choice },
    parallel_tool_calls: parallel,
  };
}

function format(format: ChatRequest['format']): object | undefined {
  if (format.type === 'text') return undefined;
  const { shape } = format;
  if (shape.kind !== 'schema') return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { name: 'answer', schema: shape.schema } };
}

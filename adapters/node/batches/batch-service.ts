import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApp } from '../../../handlers/app.ts';
import { PRIORITY_HEADER } from '../../../handlers/call.ts';
import type { AppDeps } from '../../../handlers/context.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Batches } from '../../../lib/contract/batches.ts';
import { AssayError, type ErrorCode } from '../../../lib/errors.ts';
import { membersOf } from '../../../lib/json/members.ts';
import type { ApiKey } from '../../../lib/keys.ts';
import { mapInOrder } from '../../../lib/rows/map-in-order.ts';
import { OF_SERVER, RetryLater } from '../../../lib/rows/retry-later.ts';
import type { Batch, BatchState, FileObject } from '../../../lib/schema/batches.ts';
import { type BatchLine, checkLines, readLines } from './check-lines.ts';
import { BatchStore, LAST_STATES, type LineResult, type StoredBatch } from './store.ts';
import { MOST_FILE_BYTES, readUpload } from './upload.ts';

/** Bounds of what is stored and of what runs. */
export interface BatchLimits {
  /** Files and their bytes of one key, and bytes of all keys; of answers, which become files at the end, too. */
  files: number;
  bytes: number;
  totalBytes: number;
  /** Batches of one key, and of all keys, that are not ended. */
  open: number;
  totalOpen: number;
  /** Ended batches of one key that are remembered. */
  ended: number;
  /** Batches that are answered at once, and requests of each. The engine lets interactive requests pass them. */
  running: number;
  inflight: number;
  /** Characters of the requests of one batch that are answered at once, if they are several. */
  inflightCharacters: number;
}

export const BATCH_LIMITS: BatchLimits = {
  files: 1_000,
  bytes: 2_000_000_000,
  totalBytes: 20_000_000_000,
  open: 16,
  totalOpen: 256,
  ended: 1_000,
  running: 2,
  inflight: 12,
  inflightCharacters: 40_000_000,
};

/** Milliseconds after which a batch that cannot go on, as on a full disk, is tried again. */
const STUCK_MS = 60_000;
/** Milliseconds after which a running batch gives its place to a batch of a key that runs none, and then stays away. */
const TURN_MS = 60_000;
const AWAY_MS = 10_000;
/** Seconds that a batch may take, that ended batches are remembered, and that files exist by default. */
const WINDOW_S = 24 * 3600;
const REMEMBERED_S = 30 * 24 * 3600;
const FILE_S = 30 * 24 * 3600;
/** Results that are written to the disk at once, and milliseconds after which fewer are. */
const COMMIT_LINES = 100;
const COMMIT_MS = 500;
const SWEEP_MS = 60_000;
/** Times that a line is asked when the server fails to answer it, and milliseconds between them. */
const ATTEMPTS = 3;
const RETRY_MS = 1_000;
/** Milliseconds for which a line waits for its model to be loaded. */
const LOADING_MS = 600_000;

/** Answers one request of a batch on behalf of its owner. */
export type AnswerLine = (
  owner: string,
  endpoint: string,
  body: string,
  requestId: string,
  signal: AbortSignal,
) => Promise<Response>;

/** Represents a batch that runs. */
interface Run {
  /** Aborts what it does at once. */
  stop: AbortController;
  /** Aborts its waits, and lets it begin no further line. */
  leave: AbortController;
  /** True if it must leave once a batch of a key that runs none waits: it waits for its quota, or has had its turn. */
  due: boolean;
  done: Promise<void>;
}

type Place = Omit<Run, 'done'>;

/** Represents the batches of a server: they run from `start` to `stop`. */
export interface BatchService extends Batches {
  start(answer: AnswerLine): void;
  /** Stops the running batches, which the next start of the server continues. Files and batches can still be read. */
  stop(): Promise<void>;
  /** Stops the running batches and closes the store: no other method may be called from now on. */
  close(): Promise<void>;
}

/**
 * Opens the batches that a folder keeps. What is stored survives the end of the process at any moment: a line whose
 * answer was not stored is asked again, and an output file exists once it is whole. Calls `failed` when a batch cannot
 * go on; it is tried again later.
 */
export function openBatches(
  folder: string,
  clock: Clock,
  failed: (batch: string, error: unknown) => void,
  limits: BatchLimits = BATCH_LIMITS,
): BatchService {
  const store = new BatchStore(folder, clock);
  const runs = new Map<string, Run>();
  /** Number of the last batch of each key that began to run. */
  const turns = new Map<string, number>();
  /** Uploads that arrive, with the room that they may take. */
  const arriving = new Set<{ owner: string; bytes: number }>();
  /** Batches that could not go on, or gave way, until they may run again. */
  const away = new Set<string>();
  const ending = new AbortController();
  let answer: AnswerLine | null = null;
  let sweeping: NodeJS.Timeout | null = null;

  function stored(id: string): StoredBatch {
    const batch = store.batch(id);
    if (!batch) throw notFound('batch', id);
    return batch;
  }

  function owned(owner: string, id: string): StoredBatch {
    const batch = store.batch(id);
    if (batch?.owner !== owner) throw notFound('batch', id);
    return batch;
  }

  function ownFile(owner: string, id: string): FileObject {
    const file = store.file(owner, id);
    if (!file) throw notFound('file', id);
    return file;
  }

  function change(batch: StoredBatch, status: BatchState, more: Partial<StoredBatch> = {}): StoredBatch {
    const changed = { ...batch, ...more, status, times: { ...batch.times, [`${status}_at`]: store.now() } };
    store.update(changed);
    return changed;
  }

  /**
   * Begins as many of the waiting batches as may run: of each owner in turn, the oldest first. If none may, one that is
   * due gives way to an owner without a running batch.
   */
  function schedule(): void {
    if (!answer) return;
    const open = store.open();
    const owners = Map.groupBy(
      open.filter(({ id }) => runs.has(id)),
      ({ owner }) => owner,
    );
    const waiting = open.filter(({ id }) => !runs.has(id) && !away.has(id));
    const running = ({ owner }: StoredBatch) => owners.get(owner)?.length ?? 0;
    const turn = ({ owner }: StoredBatch) => turns.get(owner) ?? 0;
    for (;;) {
      const [next] = waiting.sort((a, b) => running(a) - running(b) || turn(a) - turn(b));
      if (!next) return;
      if (runs.size >= limits.running) {
        const all = [...runs.values()];
        if (running(next) > 0 || all.some(({ leave }) => leave.signal.aborted)) return;
        all.find(({ due }) => due)?.leave.abort();
        return;
      }
      waiting.shift();
      owners.set(next.owner, [...(owners.get(next.owner) ?? []), next]);
      turns.set(next.owner, Math.max(0, ...turns.values()) + 1);
      begin(next.id, answer);
    }
  }

  function begin(id: string, ask: AnswerLine): void {
    const place: Place = { stop: new AbortController(), leave: new AbortController(), due: false };
    const done = run(id, ask, place)
      .then(() => place.leave.signal.aborted && stayAway(id, AWAY_MS))
      .catch((error: unknown) => {
        // The store may have closed meanwhile.
        if (ending.signal.aborted) return;
        failed(id, error);
        stayAway(id, STUCK_MS);
      })
      .then(() => {
        runs.delete(id);
        if (place.stop.signal.reason !== CLOSING) schedule();
      });
    runs.set(id, Object.assign(place, { done }));
  }

  function stayAway(id: string, ms: number): void {
    away.add(id);
    const again = () => away.delete(id) && schedule();
    clock.sleep(ms, ending.signal).then(again, () => undefined);
  }

  /** Notes that a batch has to give way to others. */
  function becomeDue(place: Place): void {
    if (place.due) return;
    place.due = true;
    schedule();
  }

  /** Brings a batch from its stored state to its last one. */
  async function run(id: string, ask: AnswerLine, place: Place): Promise<void> {
    let batch = stored(id);
    if (batch.status === 'validating') {
      const input = store.file(batch.owner, batch.request.input_file_id);
      const { total, errors } = input
        ? await checkLines(store.pathOf(input.id), batch.request.endpoint)
        : {
            total: 0,
            errors: [
              { code: 'file_not_found', line: null, message: 'The input file is gone.', param: 'input_file_id' },
            ],
          };
      // It may have been cancelled meanwhile.
      batch = stored(id);
      if (batch.status === 'validating') {
        batch = errors.length > 0 ? change(batch, 'failed', { errors }) : change(batch, 'in_progress', { total });
      }
    }
    if (LAST_STATES.has(batch.status)) return;
    if (batch.status === 'in_progress') await answerLines(batch, ask, place);
    if (place.stop.signal.reason === CLOSING) return;
    batch = stored(id);
    if (place.leave.signal.aborted && batch.status === 'in_progress') return;
    const expired = batch.status === 'in_progress' && store.now() >= batch.expires;
    if (batch.status === 'in_progress' && !expired) batch = change(batch, 'finalizing');
    await finish(batch, expired);
  }

  async function answerLines(batch: StoredBatch, ask: AnswerLine, place: Place): Promise<void> {
    const answered = store.answered(batch.id);
    const turnEnds = clock.now() + TURN_MS;
    const leaves = AbortSignal.any([place.stop.signal, place.leave.signal]);
    let room = Math.min(limits.bytes - store.stored(batch.owner).bytes, limits.totalBytes - store.stored().bytes);
    room -= store.resultBytes(batch.id);
    const later = new RetryLater(clock);
    let pending: LineResult[] = [];
    let timer: NodeJS.Timeout | null = null;
    const commit = () => {
      if (timer) clearTimeout(timer);
      timer = null;
      const results = pending;
      pending = [];
      if (results.length > 0) store.addResults(batch.id, results);
    };
    let held = 0;
    let released = Promise.withResolvers<void>();
    async function* open(): AsyncGenerator<BatchLine> {
      for await (const one of readLines(store.pathOf(batch.request.input_file_id), answered)) {
        if (clock.now() >= turnEnds) becomeDue(place);
        if (leaves.aborted || store.now() >= batch.expires) return;
        while (held > 0 && held + one.body.length > limits.inflightCharacters) await released.promise;
        if (leaves.aborted) return;
        held += one.body.length;
        yield one;
      }
    }
    const release = ({ body }: BatchLine) => {
      held -= body.length;
      released.resolve();
      released = Promise.withResolvers();
    };
    try {
      const bounds = { inflight: limits.inflight, window: 16 * limits.inflight };
      const answerOf = async (line: BatchLine) => {
        if (room <= 0) {
          release(line);
          return withoutAnswer(batch, line, 'disk_full', NO_ROOM);
        }
        const result = await answerLine(batch, line, ask, { later, leaves, place }).finally(() => release(line));
        room -= Buffer.byteLength(result?.text ?? '');
        return result;
      };
      for await (const result of mapInOrder(open(), bounds, answerOf)) {
        if (!result) continue;
        pending.push(result);
        if (pending.length >= COMMIT_LINES) commit();
        else timer ??= setTimeout(commit, COMMIT_MS);
      }
    } finally {
      commit();
    }
  }

  /** Returns the answer to a line; null if the batch stops or leaves before there is one. */
  async function answerLine(
    batch: StoredBatch,
    { line, customId, body }: BatchLine,
    ask: AnswerLine,
    { later, leaves, place }: { later: RetryLater; leaves: AbortSignal; place: Place },
  ): Promise<LineResult | null> {
    const { signal } = place.stop;
    const requestId = `${batch.id}-${line}`;
    const loadingUntil = clock.now() + LOADING_MS;
    for (let attempt = 1; ; ) {
      try {
        const { status, text } = await later.run(async () => {
          const response = await ask(batch.owner, batch.request.endpoint, body, requestId, signal);
          const answered = { status: response.status, text: await response.text() };
          if (response.status !== 429) return answered;
          if (codeOf(answered.text) === 'rate_limited') becomeDue(place);
          const retryAfterSeconds = Number(response.headers.get('retry-after') ?? 1);
          throw new AssayError('overloaded', 'Busy.', { retryAfterSeconds });
        }, leaves);
        if (signal.aborted) return null;
        const code = status >= 400 ? codeOf(text) : null;
        const retry =
          (code === 'model_not_loaded' && clock.now() < loadingUntil) ||
          (code !== null && OF_SERVER.has(code) && attempt++ < ATTEMPTS);
        if (!retry) {
          const response = `{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":${text || 'null'}}`;
          return { line, ok: status < 400, text: lineText(requestId, customId, response, 'null') };
        }
        await clock.sleep(RETRY_MS, leaves);
      } catch {
        if (leaves.aborted) return null;
        if (attempt++ >= ATTEMPTS) {
          return withoutAnswer(batch, { line, customId }, 'internal_error', 'The server failed. See its log.');
        }
        await clock.sleep(RETRY_MS, leaves);
      }
      if (leaves.aborted) return null;
    }
  }

  /** Writes the output files of a batch and ends it: both happen, or neither does. */
  async function finish(batch: StoredBatch, expired: boolean): Promise<void> {
    if (expired) {
      const answered = store.answered(batch.id);
      const missing: LineResult[] = [];
      for await (const one of readLines(store.pathOf(batch.request.input_file_id), answered)) {
        missing.push(withoutAnswer(batch, one, 'batch_expired', 'The batch was not done in its 24 hours.'));
      }
      store.addResults(batch.id, missing);
    }
    const { completed, failed } = store.counts(batch.id);
    const output = completed > 0 ? await resultFile(batch, true) : null;
    const errors = failed > 0 ? await resultFile(batch, false) : null;
    const last: BatchState = expired ? 'expired' : batch.status === 'cancelling' ? 'cancelled' : 'completed';
    store.transaction(() => {
      for (const one of [output, errors]) if (one) store.addFile(one.file, batch.owner);
      change({ ...batch, counts: { completed, failed } }, last, {
        ...(output ? { outputFile: output.file.id, usage: output.usage } : {}),
        ...(output?.model === undefined ? {} : { model: output.model }),
        ...(errors ? { errorFile: errors.file.id } : {}),
      });
      store.deleteResults(batch.id);
    });
  }

  async function resultFile(
    batch: StoredBatch,
    ok: boolean,
  ): Promise<{ file: FileObject; usage: NonNullable<Batch['usage']>; model?: string }> {
    const id = store.newId('file-');
    let bytes = 0;
    let model: string | undefined;
    const tokens = { input: 0, cached: 0, output: 0, reasoning: 0 };
    function* content(): Generator<string> {
      for (const { text } of store.results(batch.id, ok)) {
        const written = `${text}\n`;
        bytes += Buffer.byteLength(written);
        const answered = ok ? addUsage(text, tokens) : undefined;
        model ??= answered;
        yield written;
      }
    }
    await store.writeContent(id, toAsync(content()));
    const created = store.now();
    const seconds = batch.request.output_expires_after?.seconds ?? FILE_S;
    return {
      file: {
        id,
        object: 'file',
        bytes,
        created_at: created,
        expires_at: created + seconds,
        filename: `${batch.id}_${ok ? 'output' : 'error'}.jsonl`,
        purpose: 'batch_output',
        status: 'processed',
      },
      usage: {
        input_tokens: tokens.input,
        input_tokens_details: { cached_tokens: tokens.cached },
        output_tokens: tokens.output,
        output_tokens_details: { reasoning_tokens: tokens.reasoning },
        total_tokens: tokens.input + tokens.output,
      },
      ...(model === undefined ? {} : { model }),
    };
  }

  function bodyOf(batch: StoredBatch): Batch {
    const { id, request, status, created, expires, times, total, errors, model, outputFile, errorFile, usage } = batch;
    return {
      id,
      object: 'batch',
      endpoint: request.endpoint,
      ...(model === undefined ? {} : { model }),
      ...(errors.length > 0 ? { errors: { object: 'list', data: errors } } : {}),
      input_file_id: request.input_file_id,
      completion_window: request.completion_window,
      status,
      ...(outputFile === undefined ? {} : { output_file_id: outputFile }),
      ...(errorFile === undefined ? {} : { error_file_id: errorFile }),
      created_at: created,
      ...times,
      expires_at: expires,
      request_counts: { total, ...(batch.counts ?? store.counts(id)) },
      ...(usage ? { usage } : {}),
      metadata: request.metadata ?? null,
    };
  }

  async function stop(): Promise<void> {
    answer = null;
    ending.abort();
    if (sweeping) clearInterval(sweeping);
    const running = [...runs.values()];
    for (const one of running) one.stop.abort(CLOSING);
    await Promise.race([Promise.all(running.map(({ done }) => done)), sleep(ENDING_MS, undefined, { ref: false })]);
  }

  return {
    async upload(owner, request) {
      const sum = (uploads: { bytes: number }[]) => uploads.reduce((all, { bytes }) => all + bytes, 0);
      const beside = [...arriving].filter((one) => one.owner === owner);
      const own = store.stored(owner);
      if (
        own.files + beside.length >= limits.files ||
        own.bytes + sum(beside) >= limits.bytes ||
        store.stored().bytes + sum([...arriving]) >= limits.totalBytes
      ) {
        throw new AssayError('disk_full', 'There is no room for more files. Delete some: DELETE /v1/files/{id}.');
      }
      const id = store.newId('file-');
      const length = Number(request.headers.get('content-length') ?? MOST_FILE_BYTES);
      const place = { owner, bytes: Math.min(length, MOST_FILE_BYTES) };
      arriving.add(place);
      let upload: Awaited<ReturnType<typeof readUpload>>;
      try {
        upload = await readUpload(request, (content, limit) => store.writeContent(id, content, limit));
      } catch (error) {
        await store.deleteFile(id);
        throw error;
      } finally {
        arriving.delete(place);
      }
      const created = store.now();
      const { filename, bytes, expiresAfter = FILE_S } = upload;
      const more = { created_at: created, expires_at: created + expiresAfter, filename, purpose: 'batch' as const };
      const file: FileObject = { id, object: 'file', bytes, ...more, status: 'processed' };
      store.addFile(file, owner);
      return file;
    },
    files: (owner, page) => store.files(owner, page),
    file: ownFile,
    content: (owner, id) => store.content(ownFile(owner, id).id),
    async deleteFile(owner, id) {
      ownFile(owner, id);
      const used = store.open().find(({ request }) => request.input_file_id === id);
      if (used) {
        throw new AssayError(
          'operation_in_progress',
          `The batch ${used.id} needs this file. Cancel it, or wait for its end.`,
        );
      }
      await store.deleteFile(id);
    },
    create(owner, request, idempotencyKey) {
      const fingerprint = createHash('sha256').update(JSON.stringify(request)).digest('hex');
      const earlier = idempotencyKey === undefined ? null : store.withKey(owner, idempotencyKey);
      if (earlier) {
        if (earlier.fingerprint === fingerprint) return bodyOf(earlier);
        throw new AssayError(
          'operation_in_progress',
          'This Idempotency-Key was used for another batch. Use a new one.',
          {
            param: 'idempotency-key',
          },
        );
      }
      const input = store.file(owner, request.input_file_id);
      if (input?.purpose !== 'batch') throw notFound('file', request.input_file_id, 'input_file_id');
      const open = store.open();
      if (open.length >= limits.totalOpen || open.filter((one) => one.owner === owner).length >= limits.open) {
        const message = `This key has ${limits.open} open batches, or the server too many. Wait until some have ended.`;
        throw new AssayError('rate_limited', message, { retryAfterSeconds: 60 });
      }
      const created = store.now();
      const batch: StoredBatch = {
        id: store.newId('batch_'),
        owner,
        status: 'validating',
        request,
        fingerprint,
        created,
        expires: created + WINDOW_S,
        times: {},
        total: 0,
        errors: [],
      };
      store.addBatch(batch, idempotencyKey);
      store.forgetEnded(owner, limits.ended);
      schedule();
      return bodyOf(batch);
    },
    batches(owner, page) {
      const { data, more } = store.batches(owner, page);
      return { data: data.map(bodyOf), more };
    },
    batch: (owner, id) => bodyOf(owned(owner, id)),
    cancel(owner, id) {
      const batch = owned(owner, id);
      if (batch.status === 'cancelling' || batch.status === 'cancelled') return bodyOf(batch);
      if (LAST_STATES.has(batch.status) || batch.status === 'finalizing') {
        throw new AssayError('operation_in_progress', `The batch is ${batch.status}; it can no longer be cancelled.`);
      }
      const cancelled = change(batch, 'cancelling');
      runs.get(id)?.stop.abort();
      away.delete(id);
      schedule();
      return bodyOf(cancelled);
    },
    start(answers) {
      answer = answers;
      const sweep = () => store.removeExpired(store.now() - REMEMBERED_S).catch(() => undefined);
      sweeping = setInterval(() => void sweep().then(schedule), SWEEP_MS);
      sweeping.unref();
      void sweep().then(schedule);
    },
    stop,
    async close() {
      await stop();
      store.close();
    },
  };
}

/** Milliseconds that running batches have to stop, which may read a large file; they go on at the next start. */
const ENDING_MS = 2_000;
/** Reason with which batches are stopped when the server ends. */
const CLOSING = new Error('The server ends.');

function notFound(what: string, id: string, param?: string): AssayError {
  return new AssayError('not_found', `There is no ${what} ${id} of this key.`, param === undefined ? {} : { param });
}

const NO_ROOM = 'There is no room for more answers. Delete files (DELETE /v1/files/{id}), and send this line again.';

function withoutAnswer(
  batch: StoredBatch,
  { line, customId }: Pick<BatchLine, 'line' | 'customId'>,
  code: string,
  message: string,
): LineResult {
  const error = JSON.stringify({ code, message });
  return { line, ok: false, text: lineText(`${batch.id}-${line}`, customId, 'null', error) };
}

function lineText(id: string, customId: string, response: string, error: string): string {
  return `{"id":${JSON.stringify(`batch_req_${id}`)},"custom_id":${JSON.stringify(customId)},"response":${response},"error":${error}}`;
}

async function* toAsync<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items;
}

function codeOf(text: string): ErrorCode | null {
  try {
    return JSON.parse(text).error?.code ?? null;
  } catch {
    return null;
  }
}

/** Adds the tokens that an answer has used, and returns the model that gave it. */
function addUsage(
  text: string,
  tokens: Record<'input' | 'cached' | 'output' | 'reasoning', number>,
): string | undefined {
  const body = membersOf(membersOf(text).get('response') ?? '{}').get('body') ?? '{}';
  const { usage = {}, model } = JSON.parse(body);
  tokens.input += usage.input_tokens ?? usage.prompt_tokens ?? 0;
  tokens.output += usage.output_tokens ?? usage.completion_tokens ?? 0;
  tokens.cached += (usage.input_tokens_details ?? usage.prompt_tokens_details)?.cached_tokens ?? 0;
  tokens.reasoning += (usage.output_tokens_details ?? usage.completion_tokens_details)?.reasoning_tokens ?? 0;
  return model;
}

/** Maximum number of owners whose apps are kept. */
const MOST_APPS = 64;

/**
 * Returns a function that answers the requests of batches with the same handlers as those of clients. They have the
 * rights and quotas that the owner's key has at that time, and the priority `batch`.
 */
export function answerAsOwner(deps: AppDeps, keyNamed: (name: string) => Promise<ApiKey | null>): AnswerLine {
  const apps = new Map<string, ReturnType<typeof createApp>>();
  const appOf = (owner: string) => {
    const known = apps.get(owner);
    if (known) return known;
    if (apps.size >= MOST_APPS) apps.clear();
    // No secret is stored, so an app of the owner takes any.
    const { guard: _, ...rest } = deps;
    const app = createApp({ ...rest, keyForModels: true, keys: { find: () => keyNamed(owner) } });
    apps.set(owner, app);
    return app;
  };
  return async (owner, endpoint, body, requestId, signal) => {
    const headers = {
      authorization: 'Bearer batch',
      'content-type': 'application/json',
      'x-request-id': requestId,
      [PRIORITY_HEADER]: 'batch',
    };
    return appOf(owner).fetch(new Request(`http://127.0.0.1${endpoint}`, { method: 'POST', headers, body, signal }));
  };
}

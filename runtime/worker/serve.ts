import type { Priority } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { nameOf } from '../../lib/limits/fair-turns.ts';
import { refusedPrecision } from '../../lib/models/refused-precision.ts';
import { noModelLoaded } from '../../lib/models/unknown-model.ts';
import { MessageParts } from '../protocol/message-parts.ts';
import {
  type CallerFields,
  type CompileProgress,
  type CompileReport,
  type CompileSpec,
  type EngineLoad,
  type FromEngine,
  type LoadSpec,
  type ModelInfo,
  NO_LOAD,
  type Phase,
  type PreparedMedia,
  type Reply,
  type ToEngine,
  type WantedMedia,
  type WholeMessage,
  type Work,
} from '../protocol/messages.ts';
import type { GgufTexts } from '../store/import-gguf.ts';
import { TextTurns } from './text-turns.ts';

/** Answers requests with one loaded model. */
export interface ServedModel {
  info: Omit<ModelInfo, 'loadMs'>;
  /**
   * Checks a request and encodes its text, in parts between which other work may run. Throws the `AssayError` to answer
   * it with if the model cannot answer it.
   */
  prepare(work: Work, caller: Caller): Generator<void, PreparedWork>;
  /** Returns the number of jobs that run and that wait, and the KV cells in use. */
  load(): EngineLoad;
}

export interface Caller extends CallerFields {
  /** Scheduling priority; absent: `interactive`. */
  priority?: Priority | undefined;
}

export interface PreparedWork {
  promptTokens: number;
  /** Images or recordings whose prepared data `run` needs; absent or empty if none. */
  wanted?: readonly WantedMedia[];
  /**
   * Queues the request, replies `queued`, and resolves after the last reply. Rejects with the error to answer the
   * request with, such as `timeout`. After `channel.signal` aborts, rejects with its reason and frees the request's KV
   * cells before the next step.
   */
  run(channel: WorkChannel, timeoutMs: number, prepared: readonly PreparedMedia[]): Promise<void>;
}

export interface WorkChannel {
  reply(message: Unaddressed<Reply>): void;
  signal: AbortSignal;
  /** Scheduling priority; absent: `interactive`. */
  priority?: Priority | undefined;
}

/** Omits the request's id from the type of a message. */
export type Unaddressed<M> = M extends unknown ? Omit<M, 'id'> : never;

export interface Served {
  /** Loads a model. `onPhase` receives the phase that begins, and again when there is progress within it. */
  load(spec: LoadSpec, onPhase: (phase: Phase) => void): Promise<ServedModel>;
  compile(spec: CompileSpec, onProgress: (progress: CompileProgress) => void): Promise<CompileReport>;
  /** Makes text files from the metadata of a GGUF file. */
  describe(file: string): GgufTexts;
}

/** Lists the part of `process` that `serveMessages` uses. Tests replace it. */
export interface Channel {
  on(event: 'message', listener: (message: ToEngine) => void): unknown;
  on(event: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown;
  send?(message: FromEngine): unknown;
  memoryUsage(): Pick<NodeJS.MemoryUsage, 'rss' | 'heapTotal' | 'arrayBuffers'>;
}

const HEARTBEAT_MS = 500;

/**
 * Runs the engine process: answers the server's messages. While onnxruntime-node runs the model in this thread,
 * messages wait until the end of the run.
 */
export function serveMessages(served: Served, channel: Channel): void {
  let model: ServedModel | null = null;
  const turns = new TextTurns();
  const parts = new MessageParts<WholeMessage>();
  const prepared = new Map<string, { work: PreparedWork; priority: Priority | undefined }>();
  const running = new Map<string, AbortController>();
  const send = (message: FromEngine) => void channel.send?.(message);
  const onPhase = (phase: Phase) => send({ type: 'phase', phase });

  // Ignores signals: Ctrl-C and service managers send them to the whole process group, but the server ends this process
  // itself, after the last request.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) channel.on(signal, () => {});
  channel.on('message', onMessage);
  setInterval(() => {
    const { rss: rssBytes, heapTotal: heapBytes, arrayBuffers: bufferBytes } = channel.memoryUsage();
    send({ type: 'heartbeat', rssBytes, memory: { heapBytes, bufferBytes }, ...(model?.load() ?? NO_LOAD) });
  }, HEARTBEAT_MS).unref();
  send({ type: 'hello' });

  function onMessage(message: ToEngine): void {
    if (message.type === 'part') {
      const whole = parts.add(message);
      if (whole) onMessage(whole);
      return;
    }
    if (message.type === 'cancel') {
      const cancelled = new AssayError('internal_error', 'The request was cancelled.');
      prepared.delete(message.id);
      running.get(message.id)?.abort(cancelled);
      if (parts.drop(message.id)) send(failure(message.id, cancelled));
      return;
    }
    handle(message).catch((error) => send(failure(message.id, error)));
  }

  async function handle(message: Exclude<WholeMessage, { type: 'cancel' }>): Promise<void> {
    const { id } = message;
    switch (message.type) {
      case 'load': {
        const before = performance.now();
        onPhase('open');
        model = await served.load(message.spec, onPhase);
        onPhase('step');
        send({ type: 'loaded', id, info: { ...model.info, loadMs: performance.now() - before } });
        return;
      }
      case 'compile':
        onPhase('compile');
        send({
          type: 'compiled',
          id,
          report: await served.compile(message.spec, (p) => send({ type: 'progress', id, ...p })),
        });
        return;
      case 'describe':
        onPhase('compile');
        return send({ type: 'described', id, texts: { ...served.describe(message.file) } });
      case 'prepare': {
        if (!model) throw noModelLoaded('Try again once one is loaded.');
        const leaving = new AbortController();
        running.set(id, leaving);
        const { caller, cacheScope, priority } = message;
        const slices = model.prepare(message.work, {
          ...(caller === undefined ? {} : { caller }),
          ...(cacheScope === undefined ? {} : { cacheScope }),
          priority,
        });
        const work = await turns
          .run(nameOf(message), slices, {
            signal: leaving.signal,
            onSlice: (event) => onPhase(event === 'begin' ? 'text' : 'step'),
          })
          .finally(() => running.delete(id));
        prepared.set(id, { work, priority });
        const wanted = work.wanted?.length ? { wanted: [...work.wanted] } : {};
        send({ type: 'prepared', id, promptTokens: work.promptTokens, ...wanted });
        return;
      }
      case 'run': {
        const found = prepared.get(id);
        // The request was cancelled between `prepare` and `run`.
        if (!found) return;
        const { work, priority } = found;
        prepared.delete(id);
        const leaving = new AbortController();
        running.set(id, leaving);
        // A cast, because TypeScript does not distribute the added id over the union.
        const reply = (answer: Unaddressed<Reply>) => send({ ...answer, id } as FromEngine);
        const channel = { reply, signal: leaving.signal, priority };
        await work.run(channel, message.timeoutMs, message.media ?? []).finally(() => running.delete(id));
      }
    }
  }
}

function failure(id: string, error: unknown): FromEngine {
  const detail = (error instanceof Error ? (error.stack ?? error.message) : String(error)).slice(0, 8_000);
  if (!(error instanceof AssayError)) {
    const message = 'The engine failed with an internal error. Try again; the log has the details.';
    return { type: 'failed', id, error: { code: 'engine_failed', message }, detail };
  }
  const { code, message, param, retryAfterSeconds, cause } = error;
  const precision = refusedPrecision(error);
  return {
    type: 'failed',
    id,
    error: {
      code,
      message,
      ...(param === undefined ? {} : { param }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
    ...(precision ? { refusedPrecision: precision } : {}),
    ...(cause === undefined || precision
      ? {}
      : { detail: String(cause instanceof Error ? cause.stack : cause).slice(0, 8_000) }),
  };
}

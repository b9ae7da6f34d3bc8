import type { Logger } from 'pino';
import { AssayError } from '../../lib/errors.ts';
import { availableMemory } from '../device/available-memory.ts';
import type { FromEngine, LoadSpec, ModelInfo } from '../protocol/messages.ts';
import { type AdmissionLimits, AdmissionQueue, charactersOf } from './admission-queue.ts';
import { Call, type CallOptions } from './call.ts';
import { Child, type ChildOptions, ENGINE_ENTRY } from './child.ts';
import { compileInChild } from './compile-in-child.ts';
import type { EngineProcess, EngineState, EngineStatus } from './engine-process.ts';

export interface SupervisorOptions {
  log: Logger;
  /** Resident bytes of the engine process above which it is killed. Default: 90% of what there is. */
  memoryLimitBytes?: number;
  /** Milliseconds that one step of the engine may take. Default: two minutes. */
  stepLimitMs?: number;
  /** Milliseconds that loading may take. Default: ten minutes. */
  loadLimitMs?: number;
  /** Milliseconds that a new request waits for an engine that is being started again. Default: ten seconds. */
  restartPatienceMs?: number;
  /** Requests that are answered, checked, or wait. */
  admission?: AdmissionLimits;
  /** Called when the process was started again; for the metrics. */
  onRestart?(): void;
  /** For tests. */
  entry?: URL;
  watchMs?: number;
}

/** The engine process with its requests; what the backend works with. */
export interface EngineCalls {
  /** A place for one request. Throws `overloaded` at once; waits for an engine that restarts, then throws `model_not_loaded` or `engine_failed`. */
  call(options: CallOptions): Promise<Call>;
}

const MAX_BACKOFF_MS = 30_000;
const FIRST_BACKOFF_MS = 250;

/** Starts, watches and restarts the engine process. Nothing runs before the first `load`. */
export function createEngineProcess(options: SupervisorOptions): EngineProcess & EngineCalls {
  return new Supervisor(options);
}

class Supervisor implements EngineProcess, EngineCalls {
  readonly #options: SupervisorOptions;
  readonly #childOptions: ChildOptions;
  readonly #admission: AdmissionQueue;
  readonly #calls = new Map<string, Call>();
  readonly #compiles = new Set<AbortController>();
  /** Loads and unloads go one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #state: EngineState = 'stopped';
  #wanted: LoadSpec | null = null;
  #child: Child | null = null;
  #info: ModelInfo | null = null;
  #reason: string | null = null;
  #restarts = 0;
  /** Deaths since the last answer; sets the pause before the next start. */
  #failures = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #queue = { running: 0, waiting: 0 };
  #nextId = 0;
  #closed = false;
  /** Wakes those who wait for a change of state. */
  #changed = Promise.withResolvers<void>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#admission = new AdmissionQueue(options.admission);
    this.#childOptions = {
      entry: options.entry ?? ENGINE_ENTRY,
      log: options.log,
      memoryLimitBytes: options.memoryLimitBytes ?? availableMemory() * 0.9,
      watchMs: options.watchMs ?? 500,
    };
  }

  status(): EngineStatus {
    return {
      state: this.#state,
      model: this.#wanted?.model ?? null,
      info: this.#info,
      device: this.#info?.device ?? null,
      restarts: this.#restarts,
      reason: this.#reason,
      ...this.#queue,
      pid: this.#child?.pid ?? null,
      rssBytes: this.#child?.rssBytes ?? null,
    };
  }

  load(spec: LoadSpec): Promise<ModelInfo> {
    return this.#inTurn(async () => {
      await this.#stop();
      if (this.#closed) throw new AssayError('internal_error', 'The server is shutting down.');
      this.#wanted = spec;
      this.#set('loading');
      this.#failures = 0;
      try {
        return await this.#start(spec);
      } catch (error) {
        this.#wanted = null;
        this.#set('stopped');
        throw error;
      }
    });
  }

  unload(): Promise<void> {
    return this.#inTurn(() => this.#stop());
  }

  async compile(...[spec, call]: Parameters<EngineProcess['compile']>): ReturnType<EngineProcess['compile']> {
    const closing = new AbortController();
    this.#compiles.add(closing);
    const signal = call?.signal ? AbortSignal.any([call.signal, closing.signal]) : closing.signal;
    try {
      return await compileInChild(this.#childOptions, spec, { ...call, signal });
    } finally {
      this.#compiles.delete(closing);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const compile of this.#compiles) compile.abort();
    clearTimeout(this.#restartTimer);
    this.#wanted = null;
    this.#set('stopped');
    await this.#end('was closed');
  }

  async call(options: CallOptions): Promise<Call> {
    const slot = this.#admission.admit(charactersOf(options.work));
    try {
      await this.#ready(options.signal);
    } catch (error) {
      slot.release(false);
      throw error;
    }
    const child = this.#child!;
    const id = (this.#nextId++).toString(36);
    const call = new Call(
      {
        id,
        send: (message) => child.send({ ...message, id }),
        settled: (answered) => {
          slot.release(answered);
          this.#calls.delete(id);
          if (this.#calls.size === 0) this.#wake();
        },
      },
      options,
    );
    this.#calls.set(id, call);
    return call;
  }

  /** Starts a process and loads the model in it. */
  async #start(spec: LoadSpec): Promise<ModelInfo> {
    const loaded = Promise.withResolvers<ModelInfo>();
    const child = new Child(this.#childOptions, {
      message: (message) => {
        if (message.type === 'loaded') loaded.resolve(message.info);
        else if (message.type === 'failed' && message.id === LOAD_ID) {
          loaded.reject(new AssayError(message.error.code, message.error.message, { cause: message.detail }));
        } else this.#onMessage(message);
      },
      exit: (reason) => {
        loaded.reject(new AssayError('engine_failed', `The engine process ${reason} while it loaded the model.`));
        this.#died(child, reason);
      },
    });
    this.#child = child;
    child.patienceMs = this.#options.loadLimitMs ?? 600_000;
    child.send({ type: 'load', id: LOAD_ID, spec });
    try {
      this.#info = await loaded.promise;
    } catch (error) {
      this.#reason = (error as Error).message;
      this.#options.log.error({ model: spec.model, err: error }, 'model did not load');
      await this.#end('did not load the model');
      throw error;
    }
    child.patienceMs = this.#options.stepLimitMs ?? 120_000;
    this.#set('ready');
    this.#options.log.info({ ...this.#info, pid: child.pid }, 'model loaded');
    return this.#info;
  }

  #onMessage(message: FromEngine): void {
    if (message.type === 'heartbeat') this.#queue = { running: message.running, waiting: message.waiting };
    if (message.type === 'finished') this.#failures = 0;
    if ('id' in message) this.#calls.get(message.id)?.onMessage(message);
  }

  #died(child: Child, reason: string): void {
    if (child !== this.#child) return;
    this.#child = null;
    this.#info = null;
    this.#queue = { running: 0, waiting: 0 };
    const text =
      'The engine stopped while it worked on this request and is being started again. Try again in a moment.';
    for (const call of [...this.#calls.values()]) call.fail(new AssayError('engine_failed', text), false);
    if (this.#state !== 'ready') {
      this.#wake();
      return;
    }
    this.#reason = `The engine process ${reason}.`;
    this.#options.log.error({ reason, model: this.#wanted?.model }, 'engine process died');
    this.#set('restarting');
    this.#restart();
  }

  /** At once after the first death, then after longer and longer pauses until a request is answered again. */
  #restart(): void {
    const spec = this.#wanted!;
    const pause = this.#failures === 0 ? 0 : Math.min(FIRST_BACKOFF_MS * 2 ** (this.#failures - 1), MAX_BACKOFF_MS);
    this.#failures++;
    this.#restartTimer = setTimeout(() => {
      void this.#inTurn(async () => {
        // A load or unload in between has settled what is wanted.
        if (this.#state !== 'restarting' || this.#wanted !== spec) return;
        this.#restarts++;
        this.#options.onRestart?.();
        await this.#start(spec).catch(() => {
          if (this.#state === 'restarting') this.#restart();
        });
      });
    }, pause);
  }

  /** Lets requests in flight finish, then ends the process. */
  async #stop(): Promise<void> {
    clearTimeout(this.#restartTimer);
    if (this.#state === 'stopped') return;
    this.#set('stopping');
    while (this.#calls.size > 0) await this.#changed.promise;
    await this.#end('was unloaded');
    this.#wanted = null;
    this.#reason = null;
    this.#set('stopped');
  }

  async #end(reason: string): Promise<void> {
    const child = this.#child;
    this.#info = null;
    child?.kill(reason);
    while (child && this.#child === child) await this.#changed.promise;
  }

  async #ready(signal: AbortSignal): Promise<void> {
    const over = Promise.withResolvers<void>();
    let waiting = true;
    const giveUp = () => {
      waiting = false;
      over.resolve();
    };
    const patience = setTimeout(giveUp, this.#options.restartPatienceMs ?? 10_000);
    signal.addEventListener('abort', giveUp, { once: true });
    while (this.#state === 'restarting' && waiting) await Promise.race([this.#changed.promise, over.promise]);
    clearTimeout(patience);
    signal.removeEventListener('abort', giveUp);
    if (this.#state === 'ready' && this.#child) return;
    if (this.#state !== 'restarting') {
      throw new AssayError(
        'model_not_loaded',
        'No model is loaded. Load one with POST /load, or "assay load <model>".',
      );
    }
    throw new AssayError('engine_failed', 'The engine is being started again. Try again in a moment.');
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  #set(state: EngineState): void {
    this.#state = state;
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** Not an id that requests get: those are numbers. */
const LOAD_ID = 'load!';

import type { Logger } from 'pino';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { refusal } from '../../lib/refused-form.ts';
import type { FromEngine, LoadSpec, ModelInfo } from '../protocol/messages.ts';
import { type AdmissionLimits, AdmissionQueue, charactersOf } from './admission-queue.ts';
import { Call, type CallOptions } from './call.ts';
import { Child, type ChildOptions, ENGINE_ENTRY, PATIENCE, type Patience } from './child.ts';
import { compileInChild } from './compile-in-child.ts';
import type { EngineProcess, EngineStatus } from './engine-process.ts';
import { type Isolation, NO_ISOLATION } from './isolation/isolation.ts';
import { linkTargets, type ProcessNeeds } from './isolation/process-needs.ts';
import { LifeCycle, type LifeListener, reasonOf } from './life-cycle.ts';
import { compileLimits, loadLimits, type ModelLimits } from './model-limits.ts';

export interface SupervisorOptions {
  log: Logger;
  /** Resident bytes above which a process is killed. Default: what its model can need (`model-limits.ts`). */
  memoryLimitBytes?: number;
  /** Milliseconds that a process may be silent in each phase. Default: `PATIENCE`, and by the size of its model. */
  patience?: Partial<Patience>;
  /** Milliseconds that a new request waits for a restart. Default: ten seconds. */
  restartPatienceMs?: number;
  /** Bounds the requests that are checked, wait, or run. */
  admission?: AdmissionLimits;
  /** Called for each restart; for the metrics. */
  onRestart?(): void;
  /** Isolation of the processes from the rest of the machine. Default: none. */
  isolation?: Isolation;
  /** Entry point of the process; tests pass their own. */
  entry?: URL;
  watchMs?: number;
}

/** Sends requests to the engine process. */
export interface EngineCalls {
  /**
   * Admits one request. Throws `overloaded` at once when the queue is full. Waits for a restart, and throws
   * `model_not_loaded` or `engine_failed` when there is no engine afterwards.
   */
  call(options: CallOptions): Promise<Call>;
}

const MAX_BACKOFF_MS = 30_000;
const FIRST_BACKOFF_MS = 250;

/** Creates the supervisor of the engine process. It starts no process before the first `load`. */
export function createEngineProcess(options: SupervisorOptions): EngineProcess & EngineCalls {
  return new Supervisor(options);
}

class Supervisor implements EngineProcess, EngineCalls {
  readonly #options: SupervisorOptions;
  readonly #admission: AdmissionQueue;
  readonly #calls = new Map<string, Call>();
  readonly #compiles = new Set<AbortController>();
  readonly #life = new LifeCycle();
  /** The last load, unload or restart: they run one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The loaded model, which a restart loads again. */
  #spec: LoadSpec | null = null;
  #child: Child | null = null;
  #restarts = 0;
  /** Deaths since the last answer; they determine the pause before the next start. */
  #failures = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #queue = { running: 0, waiting: 0 };
  #nextId = 0;
  /** Resolves at a new state, at the end of the last call, and at the end of the process. */
  #changed = Promise.withResolvers<void>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#admission = new AdmissionQueue(options.admission);
    this.#life.onEvent((now, event) => {
      options.log.debug({ event, state: now.state, model: now.model }, 'model');
      this.#wake();
    });
  }

  status(): EngineStatus {
    const { now } = this.#life;
    return {
      ...now,
      device: now.info?.device ?? null,
      restarts: this.#restarts,
      ...this.#queue,
      pid: this.#child?.pid ?? null,
      rssBytes: this.#child?.rssBytes ?? null,
    };
  }

  onEvent(listener: LifeListener): void {
    this.#life.onEvent(listener);
  }

  beginLoad(model: ModelId): void {
    this.#life.apply('load', { model });
  }

  failLoad(error: unknown): void {
    this.#life.apply('failed', { reason: reasonOf(error) });
  }

  load(spec: LoadSpec): Promise<ModelInfo> {
    return this.#inTurn(async () => {
      if (this.#life.now.state !== 'loading') {
        await this.#stop();
        this.#life.apply('load', { model: spec.model });
      }
      const limits = await loadLimits(spec.dir);
      if (this.#life.closed) throw new AssayError('internal_error', 'The server is shutting down.');
      this.#failures = 0;
      try {
        const info = await this.#start(spec, limits);
        this.#spec = spec;
        this.#life.apply('loaded', { info });
        return info;
      } catch (error) {
        this.#options.log.error({ model: spec.model, err: error }, 'model did not load');
        this.failLoad(error);
        throw error;
      }
    });
  }

  unload(): Promise<void> {
    this.#giveUpRestart();
    return this.#inTurn(() => this.#stop());
  }

  async compile(...[spec, call]: Parameters<EngineProcess['compile']>): ReturnType<EngineProcess['compile']> {
    const closing = new AbortController();
    this.#compiles.add(closing);
    const signal = call?.signal ? AbortSignal.any([call.signal, closing.signal]) : closing.signal;
    try {
      const limits = await compileLimits(spec);
      const read = [spec.source, ...(await linkTargets(spec.source))];
      const options = this.#childOptions(limits, { read, write: [spec.target], drivers: drives(limits, spec) });
      return await compileInChild(options, spec, { ...call, signal });
    } finally {
      this.#compiles.delete(closing);
    }
  }

  beginClose(): void {
    for (const compile of this.#compiles) compile.abort();
    const { state } = this.#life.now;
    if (state === 'loaded' || state === 'unloading') {
      this.#child?.hurry();
      return;
    }
    this.#life.close();
    clearTimeout(this.#restartTimer);
    this.#child?.kill('was closed');
  }

  async close(): Promise<void> {
    this.#life.close();
    for (const compile of this.#compiles) compile.abort();
    clearTimeout(this.#restartTimer);
    await this.#end('was closed');
  }

  async call(options: CallOptions): Promise<Call> {
    const slot = this.#admission.admit(charactersOf(options.work));
    const child = await this.#ready(options.signal).catch((error) => {
      slot.release(false);
      throw error;
    });
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
  async #start(spec: LoadSpec, limits: ModelLimits): Promise<ModelInfo> {
    const loaded = Promise.withResolvers<ModelInfo>();
    const child = new Child(
      this.#childOptions(limits, { read: [spec.dir], write: [], drivers: drives(limits, spec) }),
      {
        message: (message) => {
          if (message.type === 'loaded') loaded.resolve(message.info);
          else if (message.type === 'failed' && message.id === LOAD_ID) {
            const { error, detail, refusedForm } = message;
            const cause = refusedForm ? refusal(refusedForm) : detail;
            loaded.reject(new AssayError(error.code, error.message, { cause }));
          } else this.#onMessage(message);
        },
        exit: (reason) => {
          loaded.reject(new AssayError('engine_failed', `The engine process ${reason} while it loaded the model.`));
          this.#died(child, reason);
        },
      },
    );
    this.#child = child;
    child.send({ type: 'load', id: LOAD_ID, spec });
    const info = await loaded.promise.catch(async (error) => {
      await this.#end('did not load the model');
      throw error;
    });
    this.#options.log.info({ ...info, pid: child.pid }, 'model loaded');
    return info;
  }

  #childOptions(limits: ModelLimits, needs: Omit<ProcessNeeds, 'memoryBytes'>): ChildOptions {
    const { openMs, memoryBytes } = limits;
    const { entry = ENGINE_ENTRY, log, memoryLimitBytes = memoryBytes, watchMs = 500, patience } = this.#options;
    const { isolation = NO_ISOLATION } = this.#options;
    return {
      entry,
      log,
      memoryLimitBytes,
      watchMs,
      patience: { ...PATIENCE, open: openMs, compile: openMs, ...patience },
      launch: (nodeFlags) => isolation.launch({ ...needs, memoryBytes: memoryLimitBytes }, nodeFlags),
    };
  }

  #onMessage(message: FromEngine): void {
    if (message.type === 'heartbeat') this.#queue = { running: message.running, waiting: message.waiting };
    if (message.type === 'finished') this.#failures = 0;
    if ('id' in message) this.#calls.get(message.id)?.onMessage(message);
  }

  #died(child: Child, reason: string): void {
    if (child !== this.#child) return;
    this.#child = null;
    this.#queue = { running: 0, waiting: 0 };
    const text = `The engine process ${reason}. It worked on this request and is starting again: try again in a moment.`;
    for (const call of [...this.#calls.values()]) call.fail(new AssayError('engine_failed', text), false);
    const { state, model } = this.#life.now;
    if (state === 'loaded') {
      this.#options.log.error({ reason, model }, 'engine process died');
      this.#life.apply('died', { reason: `The engine process ${reason}.` });
      this.#restart();
    } else {
      this.#wake();
    }
  }

  /** Starts the process again: at once after the first death, then after growing pauses until a request is answered. */
  #restart(): void {
    const spec = this.#spec;
    if (!spec) return;
    const pause = this.#failures === 0 ? 0 : Math.min(FIRST_BACKOFF_MS * 2 ** (this.#failures - 1), MAX_BACKOFF_MS);
    this.#failures++;
    const due = () => this.#life.now.state === 'restarting' && this.#spec === spec;
    this.#restartTimer = setTimeout(() => {
      void this.#inTurn(async () => {
        const limits = await loadLimits(spec.dir);
        if (!due()) return;
        this.#restarts++;
        this.#options.onRestart?.();
        try {
          const info = await this.#start(spec, limits);
          this.#life.apply('recovered', { info });
        } catch (error) {
          if (!due()) return;
          this.#options.log.error({ model: spec.model, err: error }, 'model did not load again');
          this.#life.apply('failed', { reason: reasonOf(error) });
          this.#restart();
        }
      });
    }, pause);
  }

  /** Ends a restart at once: there are no requests to wait for. */
  #giveUpRestart(): void {
    if (this.#life.now.state !== 'restarting') return;
    clearTimeout(this.#restartTimer);
    this.#life.apply('unload');
    this.#child?.kill('was unloaded');
  }

  /** Empties the slot: requests in flight finish, unless one is stuck, then the process ends. */
  async #stop(): Promise<void> {
    this.#giveUpRestart();
    const { state } = this.#life.now;
    if (state === 'loaded' || state === 'failed') this.#life.apply('unload');
    this.#child?.hurry();
    while (this.#calls.size > 0) await this.#changed.promise;
    await this.#end('was unloaded');
    if (state === 'loaded') this.#life.apply('unloaded');
    this.#spec = null;
  }

  async #end(reason: string): Promise<void> {
    const child = this.#child;
    child?.kill(reason);
    while (child && this.#child === child) await this.#changed.promise;
  }

  /** Returns the process that answers; waits for one that is being started again. */
  async #ready(signal: AbortSignal): Promise<Child> {
    const over = Promise.withResolvers<void>();
    let waiting = true;
    const giveUp = () => {
      waiting = false;
      over.resolve();
    };
    const patience = setTimeout(giveUp, this.#options.restartPatienceMs ?? 10_000);
    signal.addEventListener('abort', giveUp, { once: true });
    while (this.#life.now.state === 'restarting' && waiting) await Promise.race([this.#changed.promise, over.promise]);
    clearTimeout(patience);
    signal.removeEventListener('abort', giveUp);
    const { state } = this.#life.now;
    if (state === 'loaded' && this.#child) return this.#child;
    if (state !== 'restarting') {
      throw new AssayError('model_not_loaded', 'No model is loaded. Load one with POST /load or "assay load <model>".');
    }
    throw new AssayError('engine_failed', 'The engine is starting again. Try again in a moment.');
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** Id of the load. Requests have numbers as ids. */
const LOAD_ID = 'load!';

/** Tells whether a process uses a device other than the CPU. */
function drives({ device }: ModelLimits, { plugin }: Pick<LoadSpec, 'plugin'>): boolean {
  return device !== 'CPU' || plugin !== undefined;
}

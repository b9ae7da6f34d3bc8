import type { Device } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { noModelLoaded } from '../../lib/models/unknown-model.ts';
import {
  type EngineLoad,
  type EngineMemory,
  type FromEngine,
  type LoadSpec,
  type ModelInfo,
  NO_LOAD,
} from '../protocol/messages.ts';
import type { AdmissionLimits } from './calls/admission-queue.ts';
import type { CallOptions, EngineCall } from './calls/call.ts';
import { CallsInFlight } from './calls/calls-in-flight.ts';
import { ChangeSignal } from './change-signal.ts';
import { EngineChild, type ProcessOptions } from './children/engine-child.ts';
import { loadLimits, type ModelLimits } from './children/model-limits.ts';
import { endedByShutdown, LifeCycle, type LifeListener, type ModelLife, reasonOf, shuttingDown } from './life-cycle.ts';

export interface SupervisorOptions extends ProcessOptions {
  /** Milliseconds that a new request waits for a restart of the engine process. Default: 10,000. */
  restartWaitMs?: number;
  /** Limits of the admission queue. Default: `DEFAULT_ADMISSION_LIMITS`. */
  admission?: Partial<AdmissionLimits>;
  /** Called at each restart of the engine process, for the metrics. */
  onRestart?(): void;
}

/** Describes the state of a model and of its process. */
export interface EngineStatus extends ModelLife, EngineLoad {
  /** Device that runs the model; null except in the states `loaded` and `unloading`. */
  device: Device | null;
  /** Number of restarts after a death of the process, since the server started. */
  restarts: number;
  /** Number of requests that the admission queue has admitted: being checked, waiting or running. */
  admitted: number;
  /** Tokens of work of these requests: prompts, and up to 256 tokens of each answer. */
  admittedTokens: number;
  /** Milliseconds since the engine process last said something; null if there is none. */
  silentMs: number | null;
  /** True if the engine process has said nothing for some seconds although it could have. */
  unresponsive: boolean;
  /** The operating system's id of the engine process; null if there is none. */
  pid: number | null;
  /** Resident memory of the engine process in bytes; null if there is none, or it has not reported its memory yet. */
  rssBytes: number | null;
  /** JavaScript heap and buffers of the engine process, as of its last heartbeat; null if there was none. */
  memory: EngineMemory | null;
}

/** Tells a client of this host what to do while no model is loaded. */
export const HOW_TO_LOAD = 'Load one with POST /load or "assay load <model>".';
const AFTER_DEATH = 'Try again. If that fails too, load another model; the log has the details.';

/**
 * Runs one model in its own process: native code, untrusted templates and model files are handled there, never in the
 * server. The process is watched for memory and hung steps, and is restarted with the same model if it dies. No process
 * starts before the first `load`.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #calls: CallsInFlight;
  readonly #life = new LifeCycle();
  /** Settles when the newest load, unload or restart ends. Each waits for the one before. */
  #lastTurn: Promise<unknown> = Promise.resolve();
  /** Specification of the loaded model, for loading it again at a restart. */
  #spec: LoadSpec | null = null;
  #child: EngineChild | null = null;
  #restarts = 0;
  readonly #backoff = new RestartBackoff();
  #restartTimer: NodeJS.Timeout | undefined;
  /** Signals each change of state, and the end of the last call or of the process. */
  readonly #changed = new ChangeSignal();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#calls = new CallsInFlight(options.admission, () => this.#changed.send());
    this.#life.onEvent((now, event) => {
      options.log.debug({ event, state: now.state, model: now.model }, 'model');
      this.#changed.send();
    });
  }

  /** Returns the state of the model and of its process. */
  status(): EngineStatus {
    const { now } = this.#life;
    return {
      ...now,
      device: now.info?.device ?? null,
      restarts: this.#restarts,
      ...(this.#child?.load ?? NO_LOAD),
      admitted: this.#calls.admitted,
      admittedTokens: this.#calls.admittedTokens,
      silentMs: this.#child?.silentMs ?? null,
      unresponsive: this.#child?.unresponsive ?? false,
      pid: this.#child?.pid ?? null,
      rssBytes: this.#child?.rssBytes ?? null,
      memory: this.#child?.memory ?? null,
    };
  }

  /** Registers a listener that is called after every event of the model's life cycle, and after `close`. */
  onEvent(listener: LifeListener): void {
    this.#life.onEvent(listener);
  }

  /**
   * Enters the state `loading` for a model that must be compiled first. Throws `Error` unless the state is `unloaded`
   * or `failed`.
   */
  beginLoad(model: ModelId): void {
    this.#life.apply('load', { model });
  }

  /**
   * Enters the state `failed`, because the compile that `beginLoad` announced failed with `error`. Throws `Error`
   * unless the state is `loading` or `restarting`.
   */
  failLoad(error: unknown): void {
    this.#life.apply('failed', { reason: reasonOf(error) });
  }

  /**
   * Loads a compiled model; resolves once it can answer requests. Unloads another model first (see `unload`). Rejects
   * with the error that the engine process reports, with `engine_failed` if it dies, and with `internal_error` if the
   * server shuts down; no model is loaded then.
   */
  load(spec: LoadSpec): Promise<ModelInfo> {
    return this.#inTurn(async () => {
      if (this.#life.now.state !== 'loading') {
        await this.#stop();
        this.#life.apply('load', { model: spec.model });
      }
      const limits = await loadLimits(spec.dir);
      if (this.#life.closed) throw shuttingDown();
      this.#backoff.reset();
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

  /**
   * Stops accepting requests, lets those in flight finish, then ends the process, which frees all its memory. Abandons
   * a restart that is under way.
   */
  unload(): Promise<void> {
    this.#giveUpRestart();
    return this.#inTurn(() => this.#stop());
  }

  /**
   * Begins the shutdown: ends a load at once, because it can be repeated. Requests in flight continue. The caller must
   * call `close` afterwards.
   */
  beginClose(): void {
    const { state } = this.#life.now;
    if (state === 'loaded' || state === 'unloading') return;
    this.#life.close();
    clearTimeout(this.#restartTimer);
    this.#child?.kill('was closed');
  }

  /** Kills the process; requests in flight fail. */
  async close(): Promise<void> {
    this.#life.close();
    clearTimeout(this.#restartTimer);
    await this.#end('was closed');
  }

  /**
   * Admits one request and returns its call, which sends nothing before `Call.prepare`. Throws `overloaded` at once if
   * the queue is full. Waits up to `restartWaitMs` for a restart of the engine process. Throws `engine_failed` if it is
   * not running by then, and `model_not_loaded` if no model is loaded.
   */
  call(options: CallOptions): Promise<EngineCall> {
    return this.#calls.open(options, () => this.#ready(options.signal));
  }

  /** Starts an engine process and loads a model in it. */
  async #start(spec: LoadSpec, limits: ModelLimits): Promise<ModelInfo> {
    const write = spec.saved ? [spec.saved.folder] : [];
    const needs = { limits, read: [spec.dir], write, ...(spec.plugin ? { plugin: spec.plugin } : {}) };
    const child = new EngineChild(this.#options, needs, {
      message: (message) => this.#onMessage(message),
      exit: (reason) => this.#died(child, reason),
    });
    this.#child = child;
    const death = (reason: string) => `The engine process ${reason} while it loaded the model. ${AFTER_DEATH}`;
    // `CallsInFlight` numbers calls in base 36, so none has this id.
    const answer = await child.ask({ type: 'load', id: 'load!', spec }, death).catch(async (error) => {
      await this.#end('did not load the model');
      throw error;
    });
    if (answer.type !== 'loaded') throw new Error(`a load ended with the message ${answer.type}`);
    const { info } = answer;
    // `/health` and `/v1/models` say the rest; the line would become too long.
    const short = { capabilities: undefined, contract: info.contract?.name, dependence: undefined };
    this.#options.log.info({ ...info, ...short, pid: child.pid }, 'model loaded');
    return info;
  }

  #onMessage(message: FromEngine): void {
    if (message.type === 'finished') this.#backoff.reset();
    this.#calls.onMessage(message);
  }

  #died(child: EngineChild, reason: string): void {
    if (child !== this.#child) return;
    this.#child = null;
    const { state, model } = this.#life.now;
    const ended = `The engine process ${reason}.`;
    if (this.#life.closed) this.#calls.fail(() => endedByShutdown());
    const restarting = 'The engine is starting again: try again in a moment.';
    const next = state === 'loaded' ? restarting : 'No model is loaded now: try again once one is.';
    this.#calls.fail(({ progress }) => new AssayError('engine_failed', `${ended} ${progress} ${next}`));
    if (state === 'loaded') {
      this.#options.log.error({ reason, model }, 'engine process died');
      this.#life.apply('died', { reason: ended });
      this.#restart();
    } else {
      this.#changed.send();
    }
  }

  /** Starts the process again after a pause (`RestartBackoff`). If that fails, tries again after a longer one. */
  #restart(): void {
    const spec = this.#spec;
    if (!spec) return;
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
    }, this.#backoff.next());
  }

  /**
   * Abandons a restart that is pending or under way. No request is lost: those in flight failed when the process died.
   */
  #giveUpRestart(): void {
    if (this.#life.now.state !== 'restarting') return;
    clearTimeout(this.#restartTimer);
    this.#life.apply('unload');
    this.#child?.kill('was unloaded');
  }

  /** Unloads the model: waits for requests in flight, killing the process if one is stuck, then ends the process. */
  async #stop(): Promise<void> {
    this.#giveUpRestart();
    const { state } = this.#life.now;
    if (state === 'loaded' || state === 'failed') this.#life.apply('unload');
    this.#child?.hurry();
    await this.#changed.waitWhile(() => this.#calls.size > 0);
    await this.#end('was unloaded');
    if (state === 'loaded') this.#life.apply('unloaded');
    this.#spec = null;
  }

  async #end(reason: string): Promise<void> {
    const child = this.#child;
    child?.kill(reason);
    if (child) await this.#changed.waitWhile(() => this.#child === child);
  }

  /**
   * Returns the engine process once it can answer. Waits for a restart, at most `restartWaitMs` or until `signal`
   * aborts. Throws `engine_failed` if the restart has not ended by then, and `model_not_loaded` if no model is loaded.
   */
  async #ready(signal: AbortSignal): Promise<EngineChild> {
    const timeoutMs = this.#options.restartWaitMs ?? 10_000;
    await this.#changed.waitWhile(() => this.#life.now.state === 'restarting', { timeoutMs, signal });
    const { state } = this.#life.now;
    if (state === 'loaded' && this.#child) return this.#child;
    if (state !== 'restarting') {
      throw noModelLoaded(HOW_TO_LOAD);
    }
    throw new AssayError('engine_failed', 'The engine is starting again. Try again in a moment.');
  }

  /** Runs a load, unload or restart after those that were requested before it. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#lastTurn.then(work);
    this.#lastTurn = result.catch(() => {});
    return result;
  }
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Decides how long to wait before each restart of the engine process. The first restart is immediate. Later ones wait
 * 250 ms, then twice as long each time, up to 30 seconds.
 */
export class RestartBackoff {
  /** Number of restarts since the last call of `reset`. */
  #restarts = 0;

  /** Returns the milliseconds to wait before the next restart, and counts it. */
  next(): number {
    const pause = this.#restarts === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (this.#restarts - 1), LONGEST_PAUSE_MS);
    this.#restarts++;
    return pause;
  }

  /** Makes the next restart immediate, because the process has answered a request or a new model is loaded. */
  reset(): void {
    this.#restarts = 0;
  }
}

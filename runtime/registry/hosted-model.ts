import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { LoadReport, ModelView, UnloadReport } from '../../lib/models/host.ts';
import type { ModelState } from '../../lib/models/model-states.ts';
import { refusedPrecision } from '../../lib/models/refused-precision.ts';
import type { Precision } from '../../lib/schema/precision.ts';
import type { ModelInfo } from '../protocol/messages.ts';
import { type CompiledModel, isGone } from '../store/compiled-store.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import type { DeviceTrials } from './device-trials.ts';
import type { EnsuredModel } from './ensure-compiled.ts';
import { precisionReport, shownPrecision } from './precision-report.ts';
import type { PrefixFolders } from './prefix-folders.ts';

/** Runs one model in a process of its own. */
export type ModelEngine = Pick<Supervisor, keyof Supervisor>;

/**
 * Names what to do with a text that an encoder model cannot read whole: refuse it, or read it in overlapping windows,
 * if the model's family defines that.
 */
export const LONG_INPUTS = ['refuse', 'windows'] as const;
export type LongInput = (typeof LONG_INPUTS)[number];

export interface HostedModelOptions {
  model: ModelId;
  longInput: LongInput;
  /** Gives models a folder for saved prefixes; absent: prefixes end with the process. */
  prefixes?: PrefixFolders | undefined;
  /** The process that runs the model, and no other model. */
  engine: ModelEngine;
  log: Logger;
  trials: DeviceTrials;
  /** Returns milliseconds of a monotonic clock. */
  now(): number;
  /** Loads a model again whose compiled files another process removed, so that the engine cannot be restarted. */
  reload(model: ModelId, maxPromptLen: number | undefined): void;
  /** Learns that the model has been loaded, or was when a load of it came; not that it was only started again. */
  onLoaded(): void;
  /** Learns that no request came for as long as the last one wanted the model kept. */
  onExpired(): void;
}

interface LoadedModel {
  info: ModelInfo;
  /** Prompt length that the load asked for; undefined if it took the default. */
  maxPromptLen: number | undefined;
  compiled: CompiledModel;
}

/** Describes a load of the model. */
export interface ModelLoad {
  /** True if the other models in memory are unloaded for this one. */
  replaces: boolean;
  /** Requested prompt length; undefined: as long as the model and the machine's memory allow, up to a default. */
  maxPromptLen: number | undefined;
  /**
   * Finds or compiles the model for the best device that is not in `without`, in a precision that is not in
   * `refused`.
   */
  prepare(without: ReadonlySet<Device>, refused: ReadonlySet<Precision>): Promise<EnsuredModel>;
  /** Tells whether other models answer. They keep answering while this one is compiled. */
  othersServe(): boolean;
  /**
   * Unloads the models that this load replaces. With the compiled model, before it is read, also checks that it fits
   * beside those that stay.
   */
  makeRoom(compiled: CompiledModel | null): Promise<void>;
}

/** Longest time that a timer of Node can wait, 24 days. A model that is kept longer does not expire. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Holds one model in memory. Runs one load or unload at a time. The engine process owns the life cycle
 * (`docs/registry.md`).
 */
export class HostedModel {
  /** The process that runs the model. */
  readonly engine: ModelEngine;
  readonly model: ModelId;
  readonly #options: HostedModelOptions;
  readonly #trials: DeviceTrials;
  /** Model in memory, or whose engine process died and is being restarted; null if there is none. */
  #active: LoadedModel | null = null;
  /** Compiled model that the engine is loading, or will load next; null if none. */
  #loading: CompiledModel | null = null;
  #work: { request: ModelLoad | null; promise: Promise<unknown> } | null = null;
  /** Time of the load or of the last request, by the clock of `HostedModelOptions.now`. */
  usedAt = 0;
  #keepAliveMs = Number.POSITIVE_INFINITY;
  #expiry: NodeJS.Timeout | undefined;

  constructor(options: HostedModelOptions) {
    this.#options = options;
    this.#trials = options.trials;
    this.engine = options.engine;
    this.model = options.model;
    options.engine.onEvent(({ state }, event) => {
      if (state === 'unloaded' || state === 'loading' || state === 'failed') this.#active = null;
      if (state === 'restarting' && event === 'failed') void this.#reloadIfGone();
      if (event !== 'loaded') return;
      this.usedAt = options.now();
      options.onLoaded();
    });
  }

  /** Loads the model again if its compiled files are gone: no restart can succeed without them. */
  async #reloadIfGone(): Promise<void> {
    const [active, { model, log }] = [this.#active, this.#options];
    if (!active || !(await isGone(active.compiled)) || this.#active !== active || this.#work) return;
    log.warn({ model }, 'another process removed the compiled model; it is loaded again');
    this.#options.reload(model, active.maxPromptLen);
  }

  /**
   * Notes that a request begins or has ended.
   *
   * @param keepAliveMs milliseconds without a further request after which the model expires; absent: as before
   */
  used(keepAliveMs = this.#keepAliveMs): void {
    this.usedAt = this.#options.now();
    this.#keepAliveMs = keepAliveMs;
    clearTimeout(this.#expiry);
    if (keepAliveMs > LONGEST_TIMER_MS) return;
    this.#expiry = setTimeout(() => {
      if (this.engine.status().admitted > 0) this.used();
      else this.#options.onExpired();
    }, keepAliveMs).unref();
  }

  get state(): ModelState {
    return this.engine.status().state;
  }

  /** Returns the state of the model as `GET /health` shows it. */
  view(): ModelView {
    const { state, model, reason, silentMs, unresponsive } = this.engine.status();
    const tried = this.#trials.decisions;
    const shown = state === 'restarting' ? `${reason} It is starting again.` : reason;
    return {
      state,
      model,
      device: this.#active?.info.device ?? this.#loading?.record.device ?? this.#trials.next,
      ...(shown === null ? {} : { reason: shown }),
      ...(silentMs === null ? {} : { silentMs }),
      ...(unresponsive ? { unresponsive } : {}),
      ...shownPrecision(this.#active?.compiled),
      ...(this.#active?.info.dependence === undefined ? {} : { dependence: this.#active.info.dependence }),
      ...(this.#active ? { maxPromptLen: this.#active.info.maxPromptLen } : {}),
      ...(model !== null && tried.length > 0 ? { devices: tried } : {}),
    };
  }

  /** Describes the model in memory; null if there is none. */
  get info(): ModelInfo | null {
    return this.#active?.info ?? null;
  }

  /** Compiled model in memory, or in the engine process that is being restarted; null if there is none. */
  get compiled(): CompiledModel | null {
    return this.#active?.compiled ?? null;
  }

  /** Prompt length that the model in memory was loaded for; undefined if it is the default, or none is in memory. */
  get requestedLength(): number | undefined {
    return this.#active?.maxPromptLen;
  }

  /**
   * Returns the report of a load if the model is in memory already with this prompt length (undefined: any); otherwise
   * null.
   */
  loaded(maxPromptLen: number | undefined): LoadReport | null {
    if (this.state !== 'loaded' || !this.#active) return null;
    const same = maxPromptLen === undefined || maxPromptLen === this.#active.info.maxPromptLen;
    return same ? reportOf(this.#active, 0, false) : null;
  }

  /** True if a load is past its compile, so that the engine reads the model's files. */
  get isReading(): boolean {
    return this.#loading !== null;
  }

  /** The load (`request`) or unload (null) that runs; null if none does. */
  get work(): { request: ModelLoad | null; promise: Promise<unknown> } | null {
    return this.#work;
  }

  /** Tells whether the engine uses the compiled model in this directory, or is about to load it. */
  reads(directory: string): boolean {
    return this.#active?.compiled.directory === directory || this.#loading?.directory === directory;
  }

  /** True if the model is in memory, being restarted or being loaded: its files must not be deleted. */
  get inUse(): boolean {
    // This includes `restarting`: a restarted engine reads the same files.
    return (this.state !== 'failed' && this.state !== 'unloaded') || this.#work?.request != null;
  }

  /**
   * Loads the model. A second call for the same prompt length joins the first. Until it is compiled, the model in
   * memory that it replaces keeps serving; then the requests in flight of that one finish and it is unloaded. Throws
   * `operation_in_progress` during another load or an unload, and the error of the compile or of the engine.
   */
  async load(request: ModelLoad): Promise<LoadReport> {
    const now = this.#work?.request;
    if (now && now.maxPromptLen === request.maxPromptLen) {
      // A cast: work with a request is always a load.
      return this.#work?.promise as Promise<LoadReport>;
    }
    return this.#exclusively(request, () => this.#load(request));
  }

  /**
   * Unloads the model: requests in flight finish, then the engine process ends. A second call joins the first. Reports
   * the id of the model that was in memory; null if there was none. Throws `operation_in_progress` during a load.
   */
  async unload(): Promise<UnloadReport> {
    // A cast: work without a request is always an unload.
    if (this.#work && this.#work.request === null) return this.#work.promise as Promise<UnloadReport>;
    return this.#exclusively(null, async () => {
      const model = this.#active ? this.model : null;
      await this.engine.unload();
      return { model };
    });
  }

  async #load(request: ModelLoad): Promise<LoadReport> {
    const { log, now, model } = this.#options;
    const { engine } = this;
    const started = now();
    // The model in memory keeps serving until the next one is compiled.
    const swap = this.state === 'loaded' || request.othersServe();
    try {
      if (!swap) {
        await request.makeRoom(null);
        await this.#begin();
      }
      this.#trials.begin();
      const ensured = await this.#prepare(request, new Set());
      const { compiled, made } = ensured;
      // Set before the old model unloads, because its requests in flight may delay the load.
      this.#loading = compiled;
      const { maxPromptLen } = request;
      const current = this.loaded(maxPromptLen);
      if (current && this.#active?.compiled.directory === compiled.directory) {
        this.#active.maxPromptLen = maxPromptLen;
        await request.makeRoom(null);
        this.#options.onLoaded();
        return { ...current, compiled: made };
      }
      await request.makeRoom(compiled);
      if (swap) await this.#begin();
      this.#active = await this.#loadOrFallBack(request, ensured);
      return reportOf(this.#active, Math.round(now() - started), made);
    } catch (error) {
      if (this.state === 'loading') engine.failLoad(error);
      log.error({ model, err: error }, 'load failed');
      throw error;
    } finally {
      this.#loading = null;
    }
  }

  /** Unloads the model if it is in memory, and enters the state `loading`. */
  async #begin(): Promise<void> {
    const { engine, state } = this;
    if (state !== 'unloaded' && state !== 'failed') await engine.unload();
    engine.beginLoad(this.model);
  }

  /**
   * Loads the model on the first device that works. A device for which the model compiles may still fail to load it,
   * and is then not tried again. On the CPU, a precision that computes wrong logits is replaced by another one.
   */
  async #loadOrFallBack(request: ModelLoad, first: EnsuredModel): Promise<LoadedModel> {
    const { log, model } = this.#options;
    const { engine } = this;
    const refused = new Set<Precision>();
    let gone = false;
    for (let ensured = first; ; ensured = await this.#prepare(request, refused)) {
      const { compiled, plugin } = ensured;
      this.#loading = compiled;
      try {
        const { maxPromptLen } = request;
        const length = maxPromptLen === undefined ? {} : { maxPromptLen };
        const { longInput, prefixes } = this.#options;
        const windows = longInput === 'windows';
        const saved = prefixes ? { saved: await prefixes.of(compiled) } : {};
        const spec = {
          ...{ model, dir: compiled.directory, windows },
          ...length,
          ...(plugin ? { plugin } : {}),
          ...saved,
        };
        return { info: await engine.load(spec), maxPromptLen, compiled };
      } catch (error) {
        const { device } = compiled.record;
        if (!gone && (await isGone(compiled))) {
          gone = true;
          await this.#begin();
          log.warn({ model, err: error }, 'another process removed the compiled model while it loaded');
          continue;
        }
        const precision = device === 'CPU' ? refusedPrecision(error) : undefined;
        if (precision && !refused.has(precision)) {
          refused.add(precision);
          await this.#begin();
          log.warn({ model, precision, err: error }, 'wrong numbers in this precision; another one is compiled');
          continue;
        }
        if (device === 'CPU' || !isAssayError(error, 'engine_failed')) throw error;
        this.#trials.fail(device, error.message);
        await this.#begin();
        log.warn({ model, device, err: error }, 'cannot load on this device; trying the next one');
      }
    }
  }

  /** Finds or compiles the model, and records the decisions about the devices that were tried. */
  async #prepare(request: ModelLoad, refused: ReadonlySet<Precision>): Promise<EnsuredModel> {
    const ensured = await request.prepare(this.#trials.failed, refused);
    this.#trials.add(ensured.decisions);
    return ensured;
  }

  /** Runs a load (`request`) or an unload (null). Throws `operation_in_progress` while another one runs. */
  async #exclusively<T>(request: ModelLoad | null, work: () => Promise<T>): Promise<T> {
    this.refuseWhileBusy();
    const promise = work();
    this.#work = { request, promise };
    try {
      return await promise;
    } finally {
      this.#work = null;
    }
  }

  /** Throws `operation_in_progress` while a load or unload runs. */
  refuseWhileBusy(): void {
    if (!this.#work) return;
    const doing = this.#work.request ? 'loaded' : 'unloaded';
    const busy = `${this.model} is being ${doing} now. Try again when that has finished; GET /health shows the state.`;
    throw new AssayError('operation_in_progress', busy, { param: 'model' });
  }
}

function reportOf({ info, compiled }: LoadedModel, loadMs: number, made: boolean): LoadReport {
  const { model, device, maxPromptLen } = info;
  return {
    model,
    device,
    load_ms: loadMs,
    compiled: made,
    max_prompt_len: maxPromptLen,
    ...precisionReport(compiled.record),
  };
}

import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type { LoadReport, Slot, SlotState, UnloadReport } from '../../lib/host.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { refusedForm } from '../../lib/refused-form.ts';
import type { WeightForm } from '../../lib/schema/form-choice.ts';
import type { ModelInfo } from '../protocol/messages.ts';
import { type CompiledModel, isGone } from '../store/compiled-store.ts';
import type { EngineProcess } from '../supervisor/engine-process.ts';
import type { ModelState } from '../supervisor/life-cycle.ts';
import { DeviceTrials } from './device-trials.ts';
import type { EnsuredModel } from './ensure-compiled.ts';
import { formInSlot, formReport } from './form-report.ts';

export type SlotEngine = Pick<EngineProcess, 'status' | 'onEvent' | 'beginLoad' | 'failLoad' | 'load' | 'unload'>;

/**
 * Names what to do with a text that an encoder model cannot read whole: refuse it, or read it in overlapping windows,
 * if the model's family defines that.
 */
export const LONG_INPUTS = ['refuse', 'windows'] as const;
export type LongInput = (typeof LONG_INPUTS)[number];

export interface SlotOptions {
  longInput: LongInput;
  engine: SlotEngine;
  log: Logger;
  /** Devices that this machine supports, best first. The CPU is always the last. */
  devices: readonly Device[];
  /** Returns milliseconds of a monotonic clock. */
  now(): number;
  /** Loads a model again whose compiled files another process removed, so that the engine cannot be restarted. */
  reload(model: ModelId, maxPromptLen: number | undefined): void;
}

interface LoadedModel {
  info: ModelInfo;
  /** Prompt length that the load asked for; undefined if it took the default. */
  maxPromptLen: number | undefined;
  compiled: CompiledModel;
}

/** Describes a load into the slot. */
export interface LoadRequest {
  model: ModelId;
  /** Requested prompt length; undefined: as long as the model and the machine's memory allow, up to a default. */
  maxPromptLen: number | undefined;
  /**
   * Finds or compiles the model for the best device that is not in `without`, in a weight form that is not in
   * `refused`.
   */
  prepare(without: ReadonlySet<Device>, refused: ReadonlySet<WeightForm>): Promise<EnsuredModel>;
}

/** State that `GET /health` shows, for each state of the model's life cycle. */
const SLOT_STATE: Readonly<Record<ModelState, SlotState>> = {
  unloaded: 'unloaded',
  loading: 'loading',
  loaded: 'loaded',
  unloading: 'unloading',
  restarting: 'error',
  failed: 'error',
};

/**
 * Holds the one model in memory. Runs one load or unload at a time. The engine process owns the life cycle
 * (`docs/slot.md`).
 */
export class ModelSlot {
  readonly #options: SlotOptions;
  readonly #trials: DeviceTrials;
  /** Model in memory, or whose engine process died and is being restarted; null if there is none. */
  #active: LoadedModel | null = null;
  /** Compiled model that the engine is loading, or will load next; null if none. */
  #loading: CompiledModel | null = null;
  #work: { request: LoadRequest | null; promise: Promise<unknown> } | null = null;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.#trials = new DeviceTrials(options.devices);
    options.engine.onEvent(({ state, model }, event) => {
      if (state === 'unloaded' || state === 'loading' || state === 'failed') this.#active = null;
      if (state === 'restarting' && event === 'failed' && model !== null) void this.#reloadIfGone(model);
    });
  }

  /** Loads the model again if its compiled files are gone: no restart can succeed without them. */
  async #reloadIfGone(model: ModelId): Promise<void> {
    const active = this.#active;
    if (!active || !(await isGone(active.compiled)) || this.#active !== active || this.#work) return;
    this.#options.log.warn({ model }, 'another process removed the compiled model; it is loaded again');
    this.#options.reload(model, active.maxPromptLen);
  }

  /** Returns the state of the slot as `GET /health` shows it. */
  view(): Slot {
    const { state, model, reason, silentMs, unresponsive } = this.#options.engine.status();
    const tried = this.#trials.decisions;
    const shown = state === 'restarting' ? `${reason} It is starting again.` : reason;
    return {
      state: SLOT_STATE[state],
      model,
      device: this.#active?.info.device ?? this.#loading?.record.device ?? this.#trials.next,
      ...(shown === null ? {} : { reason: shown }),
      ...(silentMs === null ? {} : { silentMs }),
      ...(unresponsive ? { unresponsive } : {}),
      ...formInSlot(this.#active?.compiled),
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
  loaded(model: ModelId, maxPromptLen: number | undefined): LoadReport | null {
    const { state, model: current } = this.#options.engine.status();
    if (state !== 'loaded' || current !== model || !this.#active) return null;
    const same = maxPromptLen === undefined || maxPromptLen === this.#active.info.maxPromptLen;
    return same ? reportOf(this.#active, 0, false) : null;
  }

  /** Tells whether a load of this model is past its compile, so that the engine reads its files. */
  isReading(model: ModelId): boolean {
    return this.#loading !== null && this.#work?.request?.model === model;
  }

  /** Tells whether the engine uses the compiled model in this directory, or is about to load it. */
  reads(directory: string): boolean {
    return this.#active?.compiled.directory === directory || this.#loading?.directory === directory;
  }

  /** Tells whether a model is in memory, being restarted or being loaded. */
  uses(model: ModelId): boolean {
    const { state, model: current } = this.#options.engine.status();
    // This includes `restarting`: a restarted engine reads the same files.
    return (current === model && state !== 'failed') || this.#work?.request?.model === model;
  }

  /**
   * Loads a model. A second call for the same model and prompt length joins the first. Until the new model is compiled,
   * another model in memory keeps serving; then its requests in flight finish and it is unloaded. Throws
   * `operation_in_progress` during another load or an unload, and the error of the compile or of the engine.
   */
  async load(request: LoadRequest): Promise<LoadReport> {
    const now = this.#work?.request;
    if (now?.model === request.model && now.maxPromptLen === request.maxPromptLen) {
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
      const { engine } = this.#options;
      const model = this.#active ? engine.status().model : null;
      await engine.unload();
      return { model };
    });
  }

  async #load(request: LoadRequest): Promise<LoadReport> {
    const { engine, log, now } = this.#options;
    const started = now();
    // The model in memory keeps serving until the next one is compiled.
    const swap = engine.status().state === 'loaded';
    try {
      if (!swap) await this.#begin(request.model);
      this.#trials.begin();
      const ensured = await this.#prepare(request, new Set());
      const { compiled, made } = ensured;
      // Set before the old model unloads, because its requests in flight may delay the load.
      this.#loading = compiled;
      const { maxPromptLen } = request;
      const current = this.loaded(request.model, maxPromptLen);
      if (current && this.#active?.compiled.directory === compiled.directory) {
        this.#active.maxPromptLen = maxPromptLen;
        return { ...current, compiled: made };
      }
      if (swap) await this.#begin(request.model);
      this.#active = await this.#loadOrFallBack(request, ensured);
      return reportOf(this.#active, Math.round(now() - started), made);
    } catch (error) {
      if (engine.status().state === 'loading') engine.failLoad(error);
      log.error({ model: request.model, err: error }, 'load failed');
      throw error;
    } finally {
      this.#loading = null;
    }
  }

  /** Unloads a model that is in memory, and enters the state `loading`. */
  async #begin(model: ModelId): Promise<void> {
    const { engine } = this.#options;
    const { state } = engine.status();
    if (state !== 'unloaded' && state !== 'failed') await engine.unload();
    engine.beginLoad(model);
  }

  /**
   * Loads the model on the first device that works. A device for which the model compiles may still fail to load it,
   * and is then not tried again. On the CPU, a weight form that computes wrong logits is replaced by another form.
   */
  async #loadOrFallBack(request: LoadRequest, first: EnsuredModel): Promise<LoadedModel> {
    const { engine, log } = this.#options;
    const refused = new Set<WeightForm>();
    let gone = false;
    for (let ensured = first; ; ensured = await this.#prepare(request, refused)) {
      const { compiled, plugin } = ensured;
      this.#loading = compiled;
      try {
        const { model, maxPromptLen } = request;
        const length = maxPromptLen === undefined ? {} : { maxPromptLen };
        const windows = this.#options.longInput === 'windows';
        const spec = { model, dir: compiled.directory, windows, ...length, ...(plugin ? { plugin } : {}) };
        return { info: await engine.load(spec), maxPromptLen, compiled };
      } catch (error) {
        const { device } = compiled.record;
        if (!gone && (await isGone(compiled))) {
          gone = true;
          await this.#begin(request.model);
          log.warn({ model: request.model, err: error }, 'another process removed the compiled model while it loaded');
          continue;
        }
        const form = device === 'CPU' ? refusedForm(error) : undefined;
        if (form && !refused.has(form)) {
          refused.add(form);
          await this.#begin(request.model);
          log.warn({ model: request.model, form, err: error }, 'wrong numbers in this form; another one is compiled');
          continue;
        }
        if (device === 'CPU' || !isAssayError(error, 'engine_failed')) throw error;
        this.#trials.fail(device, error.message);
        await this.#begin(request.model);
        log.warn({ model: request.model, device, err: error }, 'cannot load on this device; trying the next one');
      }
    }
  }

  /** Finds or compiles the model, and records the decisions about the devices that were tried. */
  async #prepare(request: LoadRequest, refused: ReadonlySet<WeightForm>): Promise<EnsuredModel> {
    const ensured = await request.prepare(this.#trials.failed, refused);
    this.#trials.add(ensured.decisions);
    return ensured;
  }

  /** Runs a load (`request`) or an unload (null). Throws `operation_in_progress` while another one runs. */
  async #exclusively<T>(request: LoadRequest | null, work: () => Promise<T>): Promise<T> {
    if (this.#work) {
      const busy = this.#work.request?.model ?? this.#options.engine.status().model;
      const doing = this.#work.request ? 'loaded' : 'unloaded';
      throw new AssayError(
        'operation_in_progress',
        `${busy} is being ${doing} now. Try again when that has finished; GET /health shows the state.`,
        { param: 'model' },
      );
    }
    const promise = work();
    this.#work = { request, promise };
    try {
      return await promise;
    } finally {
      this.#work = null;
    }
  }
}

function reportOf({ info, compiled }: LoadedModel, loadMs: number, made: boolean): LoadReport {
  const { model, device, maxPromptLen } = info;
  const form = formReport(compiled.record);
  return { model, device, load_ms: loadMs, compiled: made, max_prompt_len: maxPromptLen, ...form };
}

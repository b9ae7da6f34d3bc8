import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type { DeviceDecision, LoadReport, Slot, SlotState, UnloadReport } from '../../lib/host.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { refusedForm } from '../../lib/refused-form.ts';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import type { ModelInfo } from '../protocol/messages.ts';
import type { CompiledModel } from '../store/compiled-store.ts';
import type { EngineProcess } from '../supervisor/engine-process.ts';
import type { ModelState } from '../supervisor/life-cycle.ts';
import type { EnsuredModel } from './ensure-compiled.ts';

export type SlotEngine = Pick<EngineProcess, 'status' | 'onEvent' | 'beginLoad' | 'failLoad' | 'load' | 'unload'>;

export interface SlotOptions {
  engine: SlotEngine;
  log: Logger;
  /** Devices that this machine may have, best first; the CPU is the last. */
  devices: readonly Device[];
  /** Returns milliseconds of a monotonic clock. */
  now(): number;
}

/** Asks the slot for a model. */
export interface LoadRequest {
  model: ModelId;
  maxPromptLen: number | undefined;
  /**
   * Finds or compiles the model for the best device, without devices that failed to load and forms that gave wrong
   * numbers.
   */
  prepare(without: ReadonlySet<Device>, refused: ReadonlySet<WeightForm>): Promise<EnsuredModel>;
}

/** State that `GET /health` shows for each state of the life cycle. */
const SLOT_STATE: Readonly<Record<ModelState, SlotState>> = {
  unloaded: 'unloaded',
  loading: 'loading',
  loaded: 'loaded',
  unloading: 'unloading',
  restarting: 'error',
  failed: 'error',
};

/**
 * Holds one model in memory. Runs one load or unload at a time; the engine process owns the life cycle
 * (`docs/slot.md`).
 */
export class ModelSlot {
  readonly #options: SlotOptions;
  readonly #failedDevices = new Set<Device>();
  /** Decisions about the devices of the last load. */
  #tried: readonly DeviceDecision[] = [];
  /** The model in memory, or that is loaded again after a death. */
  #active: { info: ModelInfo; compiled: CompiledModel } | null = null;
  /** The compiled form that the engine loads next. */
  #loading: CompiledModel | null = null;
  #work: { request: LoadRequest | null; promise: Promise<unknown> } | null = null;

  constructor(options: SlotOptions) {
    this.#options = options;
    options.engine.onEvent(({ state }) => {
      if (state === 'unloaded' || state === 'loading' || state === 'failed') this.#active = null;
    });
  }

  /** Returns the slot as `GET /health` shows it. */
  view(): Slot {
    const { state, model, reason } = this.#options.engine.status();
    const shown = state === 'restarting' ? `${reason} It is starting again.` : reason;
    return {
      state: SLOT_STATE[state],
      model,
      device: this.#active?.info.device ?? this.#loading?.record.device ?? this.#nextDevice(),
      ...(shown === null ? {} : { reason: shown }),
      ...formOf(this.#active?.compiled),
      ...(model !== null && this.#tried.length > 0 ? { devices: this.#tried } : {}),
    };
  }

  /** The compiled form in memory. */
  get compiled(): CompiledModel | null {
    return this.#active?.compiled ?? null;
  }

  /**
   * Returns the report of a load that has nothing to do; null when this model is not in memory with this prompt length.
   */
  loaded(model: ModelId, maxPromptLen: number | undefined): LoadReport | null {
    const { state, model: current } = this.#options.engine.status();
    if (state !== 'loaded' || current !== model || !this.#active) return null;
    const { info, compiled } = this.#active;
    const same = maxPromptLen === undefined || maxPromptLen === compiled.record.fingerprint.maxPromptLen;
    return same ? reportOf(info, 0, false) : null;
  }

  /** Tells whether a load of this model is past its compile. */
  isReading(model: ModelId): boolean {
    return this.#loading !== null && this.#work?.request?.model === model;
  }

  /** Tells whether the engine has read this directory, or may read it soon. */
  reads(directory: string): boolean {
    return this.#active?.compiled.directory === directory || this.#loading?.directory === directory;
  }

  /** Tells whether a model is in memory, or about to be. */
  uses(model: ModelId): boolean {
    const { state, model: current } = this.#options.engine.status();
    // Also while `restarting`: an engine that is started again reads the same files.
    return (current === model && state !== 'failed') || this.#work?.request?.model === model;
  }

  /**
   * Loads a model. A second call for the same one joins the first. Another model stays in use until the new one is
   * compiled; then its requests in flight finish and it is unloaded.
   */
  async load(request: LoadRequest): Promise<LoadReport> {
    const now = this.#work?.request;
    if (now?.model === request.model && now.maxPromptLen === request.maxPromptLen) {
      // Work with a request is a load.
      return this.#work?.promise as Promise<LoadReport>;
    }
    return this.#exclusively(request, () => this.#load(request));
  }

  /** Frees the memory: requests in flight finish, then the engine process ends. */
  async unload(): Promise<UnloadReport> {
    // Work without a request is an unload.
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
    // The model in memory answers until the next one is compiled.
    const swap = engine.status().state === 'loaded';
    try {
      if (!swap) await this.#begin(request.model);
      this.#tried = [];
      const ensured = await this.#prepare(request, new Set());
      const { compiled, made } = ensured;
      // From now on, for requests in flight may delay the load.
      this.#loading = compiled;
      if (this.#active?.compiled.directory === compiled.directory && engine.status().state === 'loaded') {
        return reportOf(this.#active.info, 0, made);
      }
      if (swap) await this.#begin(request.model);
      this.#active = await this.#loadOrFallBack(request, ensured);
      return reportOf(this.#active.info, Math.round(now() - started), made);
    } catch (error) {
      if (engine.status().state === 'loading') engine.failLoad(error);
      log.error({ model: request.model, err: error }, 'load failed');
      throw error;
    } finally {
      this.#loading = null;
    }
  }

  /** Frees the memory if it is in use, and enters `loading`. */
  async #begin(model: ModelId): Promise<void> {
    const { engine } = this.#options;
    const { state } = engine.status();
    if (state !== 'unloaded' && state !== 'failed') await engine.unload();
    engine.beginLoad(model);
  }

  /**
   * Loads on the first device that works. A device may compile the model and still fail to load it; it is not tried
   * again. On the CPU another form of the weights replaces one that gives wrong numbers.
   */
  async #loadOrFallBack(
    request: LoadRequest,
    first: EnsuredModel,
  ): Promise<{ info: ModelInfo; compiled: CompiledModel }> {
    const { engine, log } = this.#options;
    const refused = new Set<WeightForm>();
    for (let ensured = first; ; ensured = await this.#prepare(request, refused)) {
      const { compiled, plugin } = ensured;
      this.#loading = compiled;
      try {
        const spec = { model: request.model, dir: compiled.directory, ...(plugin ? { plugin } : {}) };
        return { info: await engine.load(spec), compiled };
      } catch (error) {
        const { device } = compiled.record;
        const form = device === 'CPU' ? refusedForm(error) : undefined;
        if (form && !refused.has(form)) {
          refused.add(form);
          await this.#begin(request.model);
          log.warn({ model: request.model, form, err: error }, 'wrong numbers in this form; another one is compiled');
          continue;
        }
        if (device === 'CPU' || !isAssayError(error, 'engine_failed')) throw error;
        this.#failedDevices.add(device);
        const reason = error.message;
        this.#tried = [
          ...this.#tried.filter((one) => one.device !== device),
          { device, used: false, reason, figures: null },
        ];
        await this.#begin(request.model);
        log.warn({ model: request.model, device, err: error }, 'cannot load on this device; trying the next one');
      }
    }
  }

  /** Finds or compiles the model, and records the decisions about devices. */
  async #prepare(request: LoadRequest, refused: ReadonlySet<WeightForm>): Promise<EnsuredModel> {
    const ensured = await request.prepare(this.#failedDevices, refused);
    this.#tried = [...this.#tried, ...ensured.decisions];
    return ensured;
  }

  /** Returns the device that an empty slot would use: the best one that has not failed to load. */
  #nextDevice(): Device {
    return this.#options.devices.find((device) => !this.#failedDevices.has(device)) ?? 'CPU';
  }

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

function formOf(compiled: CompiledModel | undefined): Pick<Slot, 'precision' | 'precisionReason'> {
  const { form, choice } = compiled?.record ?? {};
  return { ...(form ? { precision: form } : {}), ...(choice ? { precisionReason: choice.reason } : {}) };
}

function reportOf(info: ModelInfo, loadMs: number, compiled: boolean): LoadReport {
  const { model, device, maxPromptLen } = info;
  return { model, device, load_ms: loadMs, compiled, max_prompt_len: maxPromptLen };
}

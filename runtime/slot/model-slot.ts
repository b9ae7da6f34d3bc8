import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { LoadReport, Slot, SlotState, UnloadReport } from '../../lib/host.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelInfo } from '../protocol/messages.ts';
import type { CompiledModel } from '../store/compiled-store.ts';
import type { EngineProcess } from '../supervisor/engine-process.ts';
import type { EnsuredModel } from './ensure-compiled.ts';
import { nextState, type SlotTrigger } from './slot-table.ts';

export interface SlotOptions {
  engine: Pick<EngineProcess, 'load' | 'unload' | 'status'>;
  log: Logger;
  /** Devices that this machine may have, the best first; a CPU is the last. */
  devices: readonly Device[];
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

/** What the slot has to load. */
export interface LoadRequest {
  model: ModelId;
  maxPromptLen: number | undefined;
  /** Finds or makes the compiled form, for the best device but those that did not load. */
  prepare(without: ReadonlySet<Device>): Promise<EnsuredModel>;
}

/** The one place for a model in memory. Follows `SLOT_TABLE`; one load or unload at a time. */
export class ModelSlot {
  readonly #options: SlotOptions;
  readonly #failedDevices = new Set<Device>();
  #state: SlotState = 'unloaded';
  #model: ModelId | null = null;
  #reason: string | null = null;
  #active: { info: ModelInfo; compiled: CompiledModel } | null = null;
  /** What the engine is to load next. */
  #loading: CompiledModel | null = null;
  #work: { request: LoadRequest | null; promise: Promise<unknown> } | null = null;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  /** As it is now, with what happened to the engine process since it was last asked. */
  view(): Slot {
    this.#follow();
    return {
      state: this.#state,
      model: this.#model,
      device: this.#active?.info.device ?? this.#loading?.record.device ?? this.#next(),
      ...(this.#reason === null ? {} : { reason: this.#reason }),
    };
  }

  /** The compiled form that is loaded. */
  get compiled(): CompiledModel | null {
    return this.#active?.compiled ?? null;
  }

  /** What a load would report that finds this model in memory as it is wanted; null where it would not. */
  loaded(model: ModelId, maxPromptLen: number | undefined): LoadReport | null {
    if (this.view().state !== 'loaded' || this.#model !== model || !this.#active) return null;
    const { info, compiled } = this.#active;
    const same = maxPromptLen === undefined || maxPromptLen === compiled.record.fingerprint.maxPromptLen;
    return same ? reportOf(info, 0, false) : null;
  }

  /** Whether a load of this model is past its compile. */
  reading(model: ModelId): boolean {
    return this.#loading !== null && this.#work?.request?.model === model;
  }

  /** Whether the engine has read this directory, or may read it yet. */
  reads(directory: string): boolean {
    return this.#active?.compiled.directory === directory || this.#loading?.directory === directory;
  }

  /** Whether a model is, or is about to be, in memory. */
  uses(model: ModelId): boolean {
    const { state } = this.view();
    // Also in `error`: an engine that is started again reads the same files.
    const inMemory = this.#model === model && (this.#active !== null || state === 'loading' || state === 'unloading');
    return inMemory || this.#work?.request?.model === model;
  }

  /**
   * Loads a model. A second call for the same joins the first. Another model stays in use until the new one is compiled; then
   * its requests in flight finish and it gives way.
   */
  async load(request: LoadRequest): Promise<LoadReport> {
    const now = this.#work?.request;
    if (now?.model === request.model && now.maxPromptLen === request.maxPromptLen) {
      return this.#work?.promise as Promise<LoadReport>;
    }
    return this.#exclusively(request, 'load', () => this.#load(request));
  }

  /** Frees the memory: requests in flight finish, then the engine process ends. */
  async unload(): Promise<UnloadReport> {
    if (this.#work && this.#work.request === null) return this.#work.promise as Promise<UnloadReport>;
    return this.#exclusively(null, 'unload', async () => {
      this.#follow();
      const model = this.#active ? this.#model : null;
      await this.#empty();
      return { model };
    });
  }

  async #load(request: LoadRequest): Promise<LoadReport> {
    const { log, now } = this.#options;
    const started = now();
    this.#follow();
    const free = this.#state !== 'loaded';
    const restarting = free && this.#active !== null;
    if (free) {
      this.#model = request.model;
      this.#active = null;
      this.#fire('load');
    }
    try {
      // The engine would answer for a model that the slot has given up.
      if (restarting) await this.#options.engine.unload();
      const { compiled, made } = await request.prepare(this.#failedDevices);
      // From now on, for requests in flight may hold the load up.
      this.#loading = compiled;
      if (this.#active?.compiled.directory === compiled.directory && this.view().state === 'loaded') {
        return reportOf(this.#active.info, 0, made);
      }
      if (!free) {
        await this.#empty();
        this.#model = request.model;
        this.#fire('load');
      }
      this.#active = await this.#loadOrFallBack(request, compiled);
      this.#fire('loaded');
      return reportOf(this.#active.info, Math.round(now() - started), made);
    } catch (error) {
      if (this.#state === 'loading') this.#fail(error);
      log.error({ model: request.model, err: error }, 'load failed');
      throw error;
    } finally {
      this.#loading = null;
    }
  }

  /** A device that takes the compile may still not load it: then the next one is tried, and this one no more. */
  async #loadOrFallBack(
    request: LoadRequest,
    first: CompiledModel,
  ): Promise<{ info: ModelInfo; compiled: CompiledModel }> {
    const { engine, log } = this.#options;
    for (let compiled = first; ; compiled = (await request.prepare(this.#failedDevices)).compiled) {
      this.#loading = compiled;
      try {
        return { info: await engine.load({ model: request.model, dir: compiled.directory }), compiled };
      } catch (error) {
        const { device } = compiled.record;
        if (device === 'CPU' || (error as AssayError).code !== 'engine_failed') throw error;
        this.#failedDevices.add(device);
        log.warn({ model: request.model, device, err: error }, 'cannot load on this device; the next one is tried');
      }
    }
  }

  /** The device that an empty slot would use: the best one that has not failed to load. */
  #next(): Device {
    return this.#options.devices.find((device) => !this.#failedDevices.has(device)) ?? 'CPU';
  }

  async #empty(): Promise<void> {
    this.#fire('unload');
    // Also after an error: the engine may be starting again.
    await this.#options.engine.unload();
    if (this.#state === 'unloading') this.#fire('unloaded');
    this.#model = null;
    this.#active = null;
    this.#reason = null;
  }

  async #exclusively<T>(request: LoadRequest | null, trigger: 'load' | 'unload', work: () => Promise<T>): Promise<T> {
    this.#follow();
    if (this.#work || nextState(this.#state, trigger) === null) {
      const busy = this.#work?.request?.model ?? this.#model;
      const doing = this.#work && this.#work.request === null ? 'unloaded' : 'loaded';
      throw new AssayError(
        'operation_in_progress',
        `${busy} is being ${doing} now. Try again when that has ended (GET /health tells).`,
        {
          param: 'model',
        },
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

  /** Takes over what the engine process went through on its own: a crash, and its end by a restart that worked. */
  #follow(): void {
    if (!this.#active) return;
    const { state, reason } = this.#options.engine.status();
    if (this.#state === 'loaded' && (state === 'restarting' || state === 'stopped')) {
      this.#fire('died');
      this.#reason = `${reason ?? 'The engine process ended.'} It is being started again.`;
    }
    if (this.#state === 'error' && state === 'ready') this.#fire('recovered');
  }

  #fail(error: unknown): void {
    this.#active = null;
    // The message of an AssayError is made to be shown; any other may carry a path.
    this.#reason =
      error instanceof AssayError ? error.message : 'The engine could not load the model; the log tells why.';
    this.#fire('failed');
  }

  #fire(trigger: SlotTrigger): void {
    const next = nextState(this.#state, trigger);
    if (next === null) throw new Error(`the slot has no way from ${this.#state} by ${trigger}`);
    if (next !== 'error') this.#reason = null;
    this.#options.log.debug({ from: this.#state, trigger, to: next, model: this.#model }, 'slot');
    this.#state = next;
  }
}

function reportOf(info: ModelInfo, loadMs: number, compiled: boolean): LoadReport {
  const { model, device, maxPromptLen } = info;
  return { model, device, load_ms: loadMs, compiled, max_prompt_len: maxPromptLen };
}

import type { ListedModel } from '../../lib/backend.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type {
  DownloadEvent,
  DownloadReport,
  LoadReport,
  ModelHost,
  RemoveReport,
  Slot,
  UnloadReport,
} from '../../lib/host.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { nearestName } from '../../lib/nearest-name.ts';
import type { PullContext } from '../hub/pull-context.ts';
import { pullModel } from '../hub/pull-model.ts';
import type { ActiveCalibration, Calibrations } from '../store/calibrations.ts';
import type { Dtype } from '../store/dtypes.ts';
import { type LocalModel, lackOfLocalModel } from '../store/hub-cache.ts';
import { choosePromptLength, statedLengths } from '../store/prompt-length.ts';
import { removeModel } from '../store/remove-model.ts';
import type { EngineProcess } from '../supervisor/engine-process.ts';
import { shuttingDown } from '../supervisor/shutting-down.ts';
import type { CompileContext, EnsureOptions } from './compile-context.ts';
import { type DownloadOptions, type DownloadProgress, Downloads } from './downloads.ts';
import { type EnsuredModel, ensureCompiled } from './ensure-compiled.ts';
import { findModel } from './find-model.ts';
import { formReport } from './form-report.ts';
import { ModelList } from './model-list.ts';
import { type LongInput, ModelSlot, type SlotEngine } from './model-slot.ts';

export interface HostOptions {
  calibrations: Pick<Calibrations, 'find'>;
  engine: SlotEngine & Pick<EngineProcess, 'compile'>;
  pull: PullContext;
  compile: CompileContext;
  /** Says what to do with texts that an encoder model cannot read whole. Default: `refuse`. */
  longInput?: LongInput;
  /** Number format of the weights to download and compile. Default: the best for the device. */
  dtype?: Dtype;
}

/** Describes the state of the slot in the error that its model cannot be deleted. */
const IN_USE: Readonly<Record<Slot['state'], string>> = {
  unloaded: 'being loaded',
  loading: 'being loaded',
  loaded: 'loaded',
  unloading: 'being unloaded',
  error: 'being started again',
};

/** Manages the models of this machine: their files in the store, and the one model in memory (the slot). */
export class LocalModelHost implements ModelHost {
  readonly #options: HostOptions;
  readonly #slot: ModelSlot;
  readonly #downloads: Downloads;
  readonly #list: ModelList;
  /** Models whose load has begun but has not reached the slot yet. */
  readonly #loads = new Set<ModelId>();
  readonly #removals = new Set<ModelId>();
  readonly #closing = new AbortController();

  constructor(options: HostOptions) {
    const { engine, compile } = options;
    this.#options = options;
    // A device that nothing on this machine supports is tried and logged, but not shown as the one that would be used.
    const devices = compile.devices.filter((device) => compile.drives(device));
    this.#downloads = new Downloads({
      checkBegin: (model) => this.#refuseDuringRemoval(model),
      download: (...request) => this.#download(...request),
      unfollowedMs: options.pull.settings.unfollowedMs,
    });
    this.#slot = new ModelSlot({
      engine,
      log: compile.log,
      devices,
      longInput: options.longInput ?? 'refuse',
      now: () => performance.now(),
      reload: (...lost) => void this.#reload(...lost).catch(() => undefined),
    });
    this.#list = new ModelList({
      slot: this.#slot,
      downloads: this.#downloads,
      calibrations: options.calibrations,
      compile,
      find: (model) => this.#find(model),
    });
  }

  slot(): Slot {
    return this.#slot.view();
  }

  /** Returns the calibration of the loaded model; null if it has none or no model is loaded. */
  calibration(): Promise<ActiveCalibration | null> {
    return this.#list.calibration();
  }

  listModels(): Promise<readonly ListedModel[]> {
    return this.#list.models();
  }

  async load(model: ModelId, options: { maxPromptLen?: number }): Promise<LoadReport> {
    const loaded = this.#downloads.has(model) ? this.#slot.loaded(model, options.maxPromptLen) : null;
    if (loaded) return loaded;
    this.#downloads.refuseDuring(model, 'load');
    this.#refuseDuringRemoval(model);
    this.#loads.add(model);
    try {
      const local = await this.#find(model);
      if (!local) throw await this.#modelNotFound(model);
      // If the model is loaded already and the caller names no prompt length, the requested one is kept.
      const active = this.slot().model === model ? this.#slot.requestedLength : undefined;
      const maxPromptLen = options.maxPromptLen ?? active;
      choosePromptLength(maxPromptLen, await statedLengths(this.#options.compile.paths, local));
      // Not awaited: the slot tracks the load from now on.
      return this.#slot.load({
        model,
        maxPromptLen,
        prepare: (without, refused) =>
          this.#ensure(local, { maxPromptLen, without, refused, onProgress: () => undefined }),
      });
    } finally {
      this.#loads.delete(model);
    }
  }

  /** Loads a model whose compiled files are gone. If its weights are gone, too, the slot says so. */
  #reload(model: ModelId, maxPromptLen: number | undefined): Promise<LoadReport> {
    return this.#slot.load({
      model,
      maxPromptLen,
      prepare: async (without, refused) => {
        const local = await this.#find(model);
        if (!local) throw await this.#modelNotFound(model);
        return this.#ensure(local, { maxPromptLen, without, refused, onProgress: () => undefined });
      },
    });
  }

  unload(): Promise<UnloadReport> {
    return this.#slot.unload();
  }

  download(model: ModelId, options: DownloadOptions, leaving?: AbortSignal): AsyncGenerator<DownloadEvent> {
    return this.#downloads.follow(model, options, leaving);
  }

  async remove(model: ModelId, options: { compiledOnly: boolean }): Promise<RemoveReport> {
    this.#downloads.refuseDuring(model, 'delete');
    this.#refuseDuringRemoval(model);
    if (this.#slot.uses(model) || this.#loads.has(model)) {
      const slot = this.slot();
      const doing = slot.model === model ? IN_USE[slot.state] : 'being loaded';
      throw new AssayError('model_in_use', `${model} is ${doing}. Unload it first: assay unload`, { param: 'model' });
    }
    this.#removals.add(model);
    try {
      const done = await removeModel(this.#options.compile.paths, model, options);
      if (done) return { model, ...done };
    } finally {
      this.#removals.delete(model);
    }
    throw new AssayError(
      'model_not_found',
      `${model} is not on this machine, so there is nothing to delete. List the models with: assay list`,
      {
        param: 'model',
      },
    );
  }

  /** Aborts downloads and compiles, and resolves once all downloads have ended. The bytes that were downloaded stay. */
  async close(): Promise<void> {
    this.#closing.abort(shuttingDown());
    await this.#downloads.settled();
  }

  async #download(
    model: ModelId,
    options: DownloadOptions,
    report: (progress: DownloadProgress) => void,
    unfollowed: AbortSignal,
  ): Promise<DownloadReport> {
    const here = await this.#find(model);
    const bytes =
      options.allowDownload && here?.origin !== 'bundled' ? await this.#pull(model, here, report, unfollowed) : 0;
    const local = await this.#find(model);
    if (!local) {
      const lack = await this.#lackOf(model);
      if (lack) throw lack;
      const fetch = `${model} is not on this machine, and the request does not allow downloading it. Fetch it with "assay pull ${model}", or set allow_download to true.`;
      throw new AssayError('not_downloaded', fetch, { param: 'model' });
    }
    const { compiled, made } = await this.#ensure(local, {
      maxPromptLen: options.maxPromptLen,
      onProgress: (progress) => report({ type: 'progress', ...progress }),
    });
    const { record } = compiled;
    const length = record.maxPromptLen;
    return { model, state: 'compiled', bytes, compiled: made, max_prompt_len: length, ...formReport(record) };
  }

  /**
   * Downloads missing files and returns the number of bytes received. If the hub cannot be reached, returns 0 for a
   * model that is on this machine already.
   */
  async #pull(
    model: ModelId,
    here: LocalModel | null,
    report: (progress: DownloadProgress) => void,
    unfollowed: AbortSignal,
  ): Promise<number> {
    const { compile, pull } = this.#options;
    try {
      const { bytes } = await pullModel(pull, model, {
        ...this.#variant,
        signal: this.#closing.signal,
        listingSignal: unfollowed,
        onProgress: (progress) => report({ type: 'progress', ...progress }),
      });
      return bytes;
    } catch (error) {
      if (!here || !isAssayError(error, 'hub_unreachable')) throw error;
      compile.log.warn({ model, err: error }, 'cannot reach the hub; using the model on this machine');
      return 0;
    }
  }

  #ensure(
    local: LocalModel,
    options: Pick<EnsureOptions, 'onProgress' | 'without' | 'refused'> & { maxPromptLen: number | undefined },
  ): Promise<EnsuredModel> {
    const { maxPromptLen, ...others } = options;
    const ensured = ensureCompiled(this.#options.compile, local, {
      ...others,
      ...(maxPromptLen === undefined ? {} : { maxPromptLen }),
      signal: this.#closing.signal,
      inUse: (directory) => this.#slot.reads(directory),
    });
    return ensured.catch(async (error) => {
      // Another process may have removed the model in the meantime; then that is the error to report.
      throw (await this.#find(local.id)) ? error : await this.#modelNotFound(local.id);
    });
  }

  async #modelNotFound(model: ModelId): Promise<AssayError> {
    const lack = await this.#lackOf(model);
    if (lack) return lack;
    const others = (await this.listModels()).map(({ id }) => id).filter((id) => id !== model);
    const meant = nearestName(model, others);
    const advice = meant === undefined ? 'Fetch it' : `Did you mean ${meant}? Else fetch it`;
    const message = `${model} is not on this machine. ${advice}: assay pull ${model}`;
    return new AssayError('model_not_found', message, { param: 'model' });
  }

  /** Returns the error for a model of which some files are on this machine, but not enough; null for any other. */
  async #lackOf(model: ModelId): Promise<AssayError | null> {
    const { paths } = this.#options.compile;
    const found = await findModel(paths, model, this.#variant).catch(() => null);
    const lack =
      found && 'lacksBase' in found
        ? `Its base model ${found.lacksBase} is not, or has no tokenizer either.`
        : await lackOfLocalModel(paths, model, this.#variant).catch(() => null);
    if (lack === null) return null;
    const message = `${model} is on this machine, but its files cannot be used. ${lack} Fetch what is missing: assay pull ${model}`;
    return new AssayError('model_not_found', message, { param: 'model' });
  }

  get #variant(): { device: Slot['device']; dtype?: Dtype } {
    const { compile, dtype } = this.#options;
    return { device: compile.devices[0] ?? 'CPU', ...(dtype ? { dtype } : {}) };
  }

  async #find(model: ModelId): Promise<LocalModel | null> {
    const found = await findModel(this.#options.compile.paths, model, this.#variant);
    return found && 'lacksBase' in found ? null : found;
  }

  #refuseDuringRemoval(model: ModelId): void {
    if (!this.#removals.has(model)) return;
    const busy = `${model} is being deleted now. Try again when that has finished.`;
    throw new AssayError('operation_in_progress', busy, { param: 'model' });
  }
}

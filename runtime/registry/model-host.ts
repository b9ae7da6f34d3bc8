import type { Device, ListedModel } from '../../lib/backend.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type {
  DownloadReport,
  HostDownloadEvent,
  LoadOptions,
  LoadReport,
  ModelHost,
  ModelView,
  RemoveReport,
  UnloadReport,
} from '../../lib/models/host.ts';
import { nearestName } from '../../lib/nearest-name.ts';
import type { PullContext } from '../hub/pull-context.ts';
import { pullModel } from '../hub/pull-model.ts';
import type { ActiveCalibration, Calibrations } from '../store/calibrations.ts';
import type { Dtype } from '../store/dtypes.ts';
import { type LocalModel, lackOfLocalModel } from '../store/hub-cache.ts';
import { choosePromptLength, statedLengths } from '../store/prompt-length.ts';
import { removeModel } from '../store/remove-model.ts';
import type { LoadedModels } from '../supervisor/engine-backend.ts';
import { shuttingDown } from '../supervisor/life-cycle.ts';
import type { EngineStatus } from '../supervisor/supervisor.ts';
import { DeviceTrials } from './device-trials.ts';
import { type DownloadOptions, type DownloadStep, Downloads } from './downloads.ts';
import type { CompileContext, EnsureOptions } from './ensure-compiled.ts';
import { type EnsuredModel, ensureCompiled } from './ensure-compiled.ts';
import { findModel } from './find-model.ts';
import { HostedModel, type LongInput, type ModelEngine, type ModelLoad } from './hosted-model.ts';
import { MemoryBudget, type MemorySettings } from './memory-budget.ts';
import { LocalModelList } from './model-list.ts';
import { ModelRegistry } from './model-registry.ts';
import { precisionReport } from './precision-report.ts';
import type { PrefixFolders } from './prefix-folders.ts';

export interface HostOptions {
  calibrations: Pick<Calibrations, 'find'>;
  /** Creates the process of one model; it does not start before the model is loaded. */
  createEngine(model: ModelId): ModelEngine;
  /** True to load a model of this machine when the first request for it arrives. */
  loadOnDemand?: boolean;
  /** Memory for models that are loaded beside each other. Default: a load replaces the loaded model. */
  memory?: MemorySettings;
  pull: PullContext;
  compile: CompileContext;
  /** Says what to do with texts that an encoder model cannot read whole. Default: `refuse`. */
  longInput?: LongInput;
  /** Gives models a folder for saved prefixes; absent: prefixes end with the process of the model. */
  prefixes?: PrefixFolders | undefined;
  /** Number format of the weights to download and compile. Default: the best for the device. */
  dtype?: Dtype;
}

/** Maximum number of requests that wait for the load of their model. */
const MOST_WAITING = 64;
/**
 * Milliseconds that downloads have to end at a shutdown. A slow disk may keep one longer; it leaves what that of a
 * killed server leaves.
 */
const ENDING_MS = 2_000;
/** Number of models whose order of loading is remembered. */
const MOST_REMEMBERED = 64;

/**
 * Manages the models of this machine: their files in the store, and those in memory (docs/registry.md). What happens to
 * a model is decided here alone: each has one `HostedModel` while it is in memory, and at most one download.
 */
export class LocalModelHost implements ModelHost, LoadedModels {
  readonly #options: HostOptions;
  readonly #registry = new ModelRegistry();
  readonly #hosted = this.#registry.hosted;
  /** Ids of the models that were loaded, the last one first. */
  #loaded: readonly ModelId[] = [];
  readonly #budget: MemoryBudget;
  readonly #downloads: Downloads;
  readonly #list: LocalModelList;
  /** Devices that failed to load a model since the server started. */
  readonly #failedDevices = new Set<Device>();
  /** The load that requests wait for, and their number. */
  #demanded: { model: ModelId; waiting: number; load: Promise<void> } | null = null;
  /** Milliseconds that the last load for a request took. */
  #demandMs = 5_000;
  readonly #closing = new AbortController();
  /** Ends with the downloads; undefined until the shutdown begins. */
  #ended: Promise<void> | undefined;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#downloads = new Downloads({
      registry: this.#registry,
      download: (...request) => this.#download(...request),
      unfollowedMs: options.pull.settings.unfollowedMs,
    });
    this.#budget = new MemoryBudget(options.memory, (model) => this.#unload(model));
    this.#list = new LocalModelList({
      registry: this.#registry,
      calibrations: options.calibrations,
      compile: options.compile,
      find: (model) => this.#find(model),
    });
  }

  active(): ModelView {
    return this.inMemory()[0] ?? { state: 'unloaded', model: null, device: this.#trials().next };
  }

  inMemory(): readonly ModelView[] {
    const several = this.#options.memory !== undefined || this.#hosted.size > 1;
    return this.#inOrder().map((hosted) => ({
      ...hosted.view(),
      ...(several ? { memoryBytes: this.#budget.bytesOf(hosted) } : {}),
    }));
  }

  memory(): { usedBytes: number; budgetBytes: number } | null {
    return this.#options.memory ? this.#budget.figures([...this.#hosted.values()]) : null;
  }

  loadedModels(): readonly HostedModel[] {
    return this.#inOrder().filter(({ state }) => state === 'loaded' || state === 'restarting');
  }

  /** Returns the models as routes show them: first the model that was loaded last, and at the end those that failed. */
  #inOrder(): HostedModel[] {
    const rank = ({ model, state }: HostedModel) =>
      state === 'loading' ? 1e6 : state === 'failed' ? 2e6 : this.#loaded.indexOf(model);
    const shown = [...this.#hosted.values()].filter(({ state }) => state !== 'unloaded');
    return shown.sort((a, b) => rank(a) - rank(b));
  }

  #trials(): DeviceTrials {
    const { compile } = this.#options;
    // A device that nothing on this machine supports is tried and logged, but not shown as the one that would be used.
    const devices = compile.devices.filter((device) => compile.drives(device));
    return new DeviceTrials(devices, this.#failedDevices);
  }

  /** Returns what hosts a model, new if nothing does. */
  #hostedOf(model: ModelId): HostedModel {
    const known = this.#hosted.get(model);
    if (known) return known;
    const { createEngine, compile, longInput = 'refuse', prefixes } = this.#options;
    const hosted: HostedModel = new HostedModel({
      model,
      engine: createEngine(model),
      log: compile.log,
      trials: this.#trials(),
      longInput,
      prefixes,
      now: () => performance.now(),
      reload: (...lost) => void this.#reload(...lost).catch(() => undefined),
      onExpired: () => void this.#unloadHosted(hosted).catch(() => undefined),
      onLoaded: () => {
        // It may have been compiled for this.
        this.#registry.changes++;
        this.#remember(model);
      },
    });
    this.#hosted.set(model, hosted);
    return hosted;
  }

  /** Makes a model the one that was loaded last. */
  #remember(model: ModelId): void {
    this.#loaded = [model, ...this.#loaded.filter((one) => one !== model)].slice(0, MOST_REMEMBERED);
  }

  /** Forgets a model that is not in memory. */
  #tidy(hosted: HostedModel): void {
    if (hosted.state === 'unloaded' && !hosted.work && this.#hosted.get(hosted.model) === hosted)
      this.#hosted.delete(hosted.model);
  }

  /** Returns the calibration of a model in memory; null if it has none or is not loaded. */
  calibration(model: ModelId): Promise<ActiveCalibration | null> {
    return this.#list.calibration(model);
  }

  listModels(): Promise<readonly ListedModel[]> {
    return this.#list.models();
  }

  async load(model: ModelId, options: LoadOptions): Promise<LoadReport> {
    const registry = this.#registry;
    const loaded = registry.changesFiles(model) ? this.#hosted.get(model)?.loaded(options.maxPromptLen) : null;
    if (loaded) {
      if (!this.#keepsOthers(options)) await this.#unloadOthers(model);
      this.#remember(model);
      return loaded;
    }
    registry.refuseDuringFileWork(model, 'load');
    const release = registry.claim(model);
    try {
      const local = await this.#find(model);
      if (!local) throw await this.#modelNotFound(model);
      // If the model is loaded already and the caller names no prompt length, the requested one is kept.
      const maxPromptLen = options.maxPromptLen ?? this.#hosted.get(model)?.requestedLength;
      choosePromptLength(maxPromptLen, await statedLengths(this.#options.compile.paths, local));
      // Not awaited: the hosted model tracks the load from now on.
      return this.#loadInto(model, options, maxPromptLen, async () => local);
    } finally {
      release();
    }
  }

  async #loadInto(
    model: ModelId,
    options: LoadOptions,
    maxPromptLen: number | undefined,
    find: () => Promise<LocalModel>,
  ): Promise<LoadReport> {
    const keepOthers = this.#keepsOthers(options);
    const others = () => this.#others(model);
    if (!keepOthers) for (const other of others()) other.refuseWhileBusy();
    const hosted = this.#hostedOf(model);
    const request: ModelLoad = {
      replaces: !keepOthers,
      maxPromptLen,
      prepare: async (without, refused) =>
        this.#ensure(await find(), { maxPromptLen, without, refused, onProgress: () => undefined }),
      othersServe: () => others().some(({ state }) => state === 'loaded'),
      makeRoom: async (compiled) => {
        if (!keepOthers) await this.#unloadOthers(model);
        else if (compiled) await this.#budget.reserve(hosted, compiled.directory, others(), options.evict);
      },
    };
    return hosted.load(request).finally(() => {
      this.#budget.settle(model);
      this.#tidy(hosted);
    });
  }

  #keepsOthers({ keepOthers = this.#options.memory !== undefined }: LoadOptions): boolean {
    return keepOthers;
  }

  #others(model: ModelId): HostedModel[] {
    return [...this.#hosted.values()].filter((one) => one.model !== model);
  }

  async #unloadOthers(model: ModelId): Promise<void> {
    for (const other of this.#others(model)) await this.#unloadHosted(other);
  }

  /** Loads a model whose compiled files are gone. If its weights are gone, too, its state says so. */
  #reload(model: ModelId, maxPromptLen: number | undefined): Promise<LoadReport> {
    return this.#loadInto(model, { keepOthers: true }, maxPromptLen, async () => {
      const local = await this.#find(model);
      if (!local) throw await this.#modelNotFound(model);
      return local;
    });
  }

  async unload(model?: ModelId): Promise<UnloadReport> {
    if (model === undefined) {
      const replacing = [...this.#hosted.values()].find(({ work }) => work?.request?.replaces);
      replacing?.refuseWhileBusy();
    }
    const hosted = model === undefined ? this.#inOrder()[0] : this.#hosted.get(model);
    return hosted ? this.#unloadHosted(hosted) : { model: null };
  }

  async #unload(model: ModelId): Promise<void> {
    await this.unload(model);
  }

  /** Loads a model for a request; undefined unless models are loaded on demand. */
  get demand(): LoadedModels['demand'] {
    return this.#options.loadOnDemand ? (wanted) => this.#demandOne(wanted) : undefined;
  }

  /** Loads a model for a request; without an id, the one that was loaded last. One such load runs at a time. */
  async #demandOne(wanted: ModelId | undefined): Promise<void> {
    const model = wanted ?? this.#loaded[0];
    if (model === undefined) return;
    this.#demanded ??= { model, waiting: 0, load: this.#demand(model) };
    const demanded = this.#demanded;
    if (demanded.model !== model || demanded.waiting >= MOST_WAITING) throw this.#tryLater(demanded.model);
    demanded.waiting++;
    await demanded.load.catch((error: unknown) => {
      throw isAssayError(error, 'operation_in_progress') ? this.#tryLater(model) : error;
    });
  }

  #tryLater(loading: ModelId): AssayError {
    const busy = `${loading} is being loaded or changed now. Try again after the seconds in Retry-After.`;
    return new AssayError('overloaded', busy, { retryAfterSeconds: Math.max(1, Math.ceil(this.#demandMs / 1000)) });
  }

  async #demand(model: ModelId): Promise<void> {
    const started = performance.now();
    try {
      await this.load(model, { keepOthers: true });
      this.#demandMs = performance.now() - started;
    } finally {
      this.#demanded = null;
    }
  }

  #unloadHosted(hosted: HostedModel): Promise<UnloadReport> {
    return hosted.unload().finally(() => this.#tidy(hosted));
  }

  download(model: ModelId, options: DownloadOptions, leaving?: AbortSignal): AsyncGenerator<HostDownloadEvent> {
    return this.#downloads.follow(model, options, leaving);
  }

  async remove(model: ModelId, options: { compiledOnly: boolean }): Promise<RemoveReport> {
    this.#registry.refuseDuringFileWork(model, 'delete');
    this.#registry.refuseInUse(model);
    this.#registry.apply(model, 'delete');
    try {
      const done = await removeModel(this.#options.compile.paths, model, options);
      if (done) return { model, ...done };
    } finally {
      this.#registry.apply(model, 'ended');
    }
    throw new AssayError(
      'model_not_found',
      `${model} is not on this machine, so there is nothing to delete. List the models with: assay list`,
      {
        param: 'model',
      },
    );
  }

  /** Returns the state of the engine of each model in memory. */
  engines(): readonly EngineStatus[] {
    return this.#inOrder().map(({ engine }) => engine.status());
  }

  /**
   * Begins the shutdown: ends downloads, compiles and loads, and resolves once all downloads have ended or two seconds
   * have passed. The bytes that were downloaded stay. Requests in flight continue.
   */
  beginClose(): Promise<void> {
    this.#closing.abort(shuttingDown());
    for (const { engine } of this.#hosted.values()) engine.beginClose();
    this.#ended ??= this.#downloads.settled(ENDING_MS);
    return this.#ended;
  }

  /** Ends all engines; requests in flight fail. */
  async close(): Promise<void> {
    const ended = this.beginClose();
    await Promise.all([...this.#hosted.values()].map(({ engine }) => engine.close()));
    await ended;
  }

  async #download(
    model: ModelId,
    options: DownloadOptions,
    report: (progress: DownloadStep) => void,
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
    return { model, state: 'compiled', bytes, compiled: made, max_prompt_len: length, ...precisionReport(record) };
  }

  /**
   * Downloads missing files and returns the number of bytes received. If the hub cannot be reached, returns 0 for a
   * model that is on this machine already.
   */
  async #pull(
    model: ModelId,
    here: LocalModel | null,
    report: (progress: DownloadStep) => void,
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
      inUse: (directory) => [...this.#hosted.values()].some((hosted) => hosted.reads(directory)),
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

  get #variant(): { device: ModelView['device']; dtype?: Dtype } {
    const { compile, dtype } = this.#options;
    return { device: compile.devices[0] ?? 'CPU', ...(dtype ? { dtype } : {}) };
  }

  async #find(model: ModelId): Promise<LocalModel | null> {
    const found = await findModel(this.#options.compile.paths, model, this.#variant);
    return found && 'lacksBase' in found ? null : found;
  }
}

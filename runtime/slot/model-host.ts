import type { ListedModel, ModelStatus } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
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
import { listCompiled } from '../store/compiled-store.ts';
import { findLocalModel, type LocalModel, localModelIds } from '../store/hub-cache.ts';
import type { Dtype } from '../store/model-files.ts';
import { choosePromptLength, contextLength } from '../store/prompt-length.ts';
import { removeModel } from '../store/remove-model.ts';
import type { EngineProcess } from '../supervisor/engine-process.ts';
import {
  type CompileContext,
  type EnsuredModel,
  type EnsureOptions,
  ensureCompiled,
  wouldServe,
} from './ensure-compiled.ts';
import { ModelSlot, type SlotEngine } from './model-slot.ts';
import { Operation } from './operation.ts';

export interface HostOptions {
  calibrations: Pick<Calibrations, 'find'>;
  engine: SlotEngine & Pick<EngineProcess, 'compile'>;
  pull: PullContext;
  compile: CompileContext;
  /** Number format to download and compile in place of the best one for the device. */
  dtype?: Dtype;
}

type DownloadProgress = Extract<DownloadEvent, { type: 'progress' }>;
type DownloadOptions = Parameters<ModelHost['download']>[1];
type Download = Operation<DownloadProgress, DownloadReport> & { readonly options: DownloadOptions };

/** What is done with a model that cannot be deleted now. */
const IN_USE: Readonly<Record<Slot['state'], string>> = {
  unloaded: 'being loaded',
  loading: 'being loaded',
  loaded: 'loaded',
  unloading: 'being unloaded',
  error: 'being started again',
};

/** The models of this machine: files in the store, one of them in the slot. */
export class LocalModelHost implements ModelHost {
  readonly #options: HostOptions;
  readonly #slot: ModelSlot;
  readonly #downloads = new Map<ModelId, Download>();
  /** Models whose load has been asked for, and that the slot does not know of yet. */
  readonly #loads = new Set<ModelId>();
  readonly #removals = new Set<ModelId>();
  readonly #closing = new AbortController();

  constructor(options: HostOptions) {
    const { engine, compile } = options;
    this.#options = options;
    // A device that is wished for, but that nothing here drives, is tried and logged; it is none that would be used.
    const devices = compile.devices.filter((device) => compile.drives(device));
    this.#slot = new ModelSlot({ engine, log: compile.log, devices, now: () => performance.now() });
  }

  /** The calibration of the loaded model. */
  async calibration(): Promise<ActiveCalibration | null> {
    const { model } = this.slot();
    const fingerprint = this.#slot.compiled?.record.fingerprint.source;
    return model && fingerprint ? this.#options.calibrations.find(model, fingerprint) : null;
  }

  /** What the list of models says of the loaded one. */
  async #calibrationOf(id: ModelId): Promise<Pick<ListedModel, 'fingerprint' | 'calibration'>> {
    const fingerprint = this.#slot.compiled?.record.fingerprint.source;
    if (this.slot().state !== 'loaded' || !fingerprint) return {};
    const active = await this.#options.calibrations.find(id, fingerprint);
    if (!active) return { fingerprint };
    const { fitted, kinds } = active.calibration;
    return { fingerprint, calibration: { from: active.from, fitted, kinds } };
  }

  slot(): Slot {
    return this.#slot.view();
  }

  async listModels(): Promise<readonly ListedModel[]> {
    const { paths } = this.#options.compile;
    const { model } = this.slot();
    const ids = new Set([...(await localModelIds(paths)), ...this.#downloads.keys(), ...(model ? [model] : [])]);
    const listed = [...ids].sort().map(async (id) => ({
      id,
      status: await this.#statusOf(id),
      ...(id === model ? await this.#calibrationOf(id) : {}),
    }));
    return (await Promise.all(listed)).filter((entry): entry is ListedModel => entry.status !== null);
  }

  async load(model: ModelId, options: { maxPromptLen?: number }): Promise<LoadReport> {
    const there = this.#downloads.has(model) ? this.#slot.loaded(model, options.maxPromptLen) : null;
    if (there) return there;
    this.#refuseDuringDownload(model, 'load');
    this.#refuseDuringRemoval(model);
    this.#loads.add(model);
    try {
      const local = await this.#find(model);
      if (!local) throw await this.#notHere(model);
      // The active model keeps its prompt length where the caller names none.
      const active = this.slot().model === model ? this.#slot.compiled?.record.fingerprint.maxPromptLen : undefined;
      const wanted = options.maxPromptLen ?? active;
      const maxPromptLen = choosePromptLength(wanted, await contextLength(this.#options.compile.paths, local));
      // Not awaited here: from now on the slot knows of it.
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

  unload(): Promise<UnloadReport> {
    return this.#slot.unload();
  }

  async *download(model: ModelId, options: DownloadOptions, leaving?: AbortSignal): AsyncGenerator<DownloadEvent> {
    for (;;) {
      const running = this.#downloads.get(model) ?? this.#begin(model, options);
      const theirs = running.options;
      const wanted = options.maxPromptLen ?? theirs.maxPromptLen;
      if (theirs.maxPromptLen !== undefined && theirs.maxPromptLen !== wanted) {
        const other = `${model} is being downloaded with another max_prompt_len. Try again when that has ended.`;
        throw new AssayError('operation_in_progress', other, { param: 'max_prompt_len' });
      }
      // Joined, one that may not ask the hub gives less than was asked for here; so may one of the default length,
      // which is known at its end.
      const less = options.allowDownload && !theirs.allowDownload;
      const report = yield* less ? orFailed(running.follow(leaving), leaving) : running.follow(leaving);
      const enough = report && !less && (wanted === undefined || report.max_prompt_len === wanted);
      if (report && (enough || theirs === options)) {
        yield { type: 'done', report };
        return;
      }
    }
  }

  #begin(model: ModelId, options: DownloadOptions): Download {
    this.#refuseDuringRemoval(model);
    const work = new Operation<DownloadProgress, DownloadReport>(async (report, unfollowed) => {
      try {
        return await this.#download(model, options, report, unfollowed);
      } finally {
        this.#downloads.delete(model);
      }
    }, this.#options.pull.settings.unfollowedMs);
    const download = Object.assign(work, { options });
    this.#downloads.set(model, download);
    return download;
  }

  async remove(model: ModelId, options: { compiledOnly: boolean }): Promise<RemoveReport> {
    this.#refuseDuringDownload(model, 'delete');
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
      `${model} is not on this machine, so there is nothing to delete. assay list shows what is.`,
      {
        param: 'model',
      },
    );
  }

  /** Stops downloads and compiles; what they have fetched is kept. */
  async close(): Promise<void> {
    this.#closing.abort(new AssayError('internal_error', 'The server is shutting down.'));
    await Promise.allSettled([...this.#downloads.values()].map((download) => download.result));
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
      const fetch = `${model} is not on this machine, and the request does not allow to download it. Fetch it with "assay pull ${model}", or set allow_download to true.`;
      throw new AssayError('not_downloaded', fetch, { param: 'model' });
    }
    const { compiled, made } = await this.#ensure(local, {
      maxPromptLen: options.maxPromptLen,
      onProgress: (progress) => report({ type: 'progress', ...progress }),
    });
    return { model, state: 'compiled', bytes, compiled: made, max_prompt_len: compiled.record.maxPromptLen };
  }

  /** Fetches what is missing. Without the hub, a model that is here already will do. */
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
      if (!here || (error as AssayError).code !== 'hub_unreachable') throw error;
      compile.log.warn({ model, err: error }, 'the hub cannot be asked; the model on this machine is used');
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
      // Another process may have removed the model meanwhile: then that is what has to be told.
      throw (await this.#find(local.id)) ? error : await this.#notHere(local.id);
    });
  }

  async #notHere(model: ModelId): Promise<AssayError> {
    const known = (await this.listModels()).map(({ id }) => id);
    const meant = nearestName(model, known);
    const advice = meant === undefined ? 'Fetch it' : `Did you mean ${meant}? Else fetch it`;
    const message = `${model} is not on this machine. ${advice}: assay pull ${model}`;
    return new AssayError('model_not_found', message, { param: 'model' });
  }

  get #variant(): { device: Slot['device']; dtype?: Dtype } {
    const { compile, dtype } = this.#options;
    return { device: compile.devices[0] ?? 'CPU', ...(dtype ? { dtype } : {}) };
  }

  #find(model: ModelId): Promise<LocalModel | null> {
    return findLocalModel(this.#options.compile.paths, model, this.#variant);
  }

  #refuseDuringDownload(model: ModelId, verb: 'load' | 'delete'): void {
    const progress = this.#downloads.get(model);
    if (!progress) return;
    const { stage, bytes, total } = progress.latest ?? { stage: 'downloading', bytes: 0, total: null };
    const far = total ? ` (${Math.floor((100 * bytes) / total)} %)` : '';
    throw new AssayError('operation_in_progress', `${model} is ${stage} now${far}; ${verb} it when that has ended.`, {
      param: 'model',
    });
  }

  #refuseDuringRemoval(model: ModelId): void {
    if (!this.#removals.has(model)) return;
    const busy = `${model} is being deleted now. Try again when that has ended.`;
    throw new AssayError('operation_in_progress', busy, { param: 'model' });
  }

  async #statusOf(model: ModelId): Promise<ModelStatus | null> {
    const slot = this.slot();
    if (slot.model === model && slot.state !== 'unloaded') return slot.state === 'loaded' ? 'active' : slot.state;
    const download = this.#downloads.get(model);
    if (download) return download.latest?.stage === 'compiling' ? 'compiling' : 'downloading';
    if (this.#slot.uses(model)) return this.#slot.reading(model) ? 'loading' : 'compiling';
    const local = await this.#find(model);
    if (!local) return null;
    const compiled = await listCompiled(this.#options.compile.paths, model);
    if (compiled.some(({ record }) => wouldServe(this.#options.compile, local, record.fingerprint))) return 'compiled';
    return local.origin === 'bundled' ? 'available' : 'downloaded';
  }
}

/** What others' work gave; undefined where it failed, which is theirs to hear. Throws where this caller leaves. */
async function* orFailed<P, R>(work: AsyncGenerator<P, R>, leaving?: AbortSignal): AsyncGenerator<P, R | undefined> {
  try {
    return yield* work;
  } catch {
    leaving?.throwIfAborted();
    return undefined;
  }
}

import type { ListedModel, ModelStatus } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ActiveCalibration, Calibrations } from '../store/calibrations.ts';
import { listCompiled } from '../store/compiled-store.ts';
import { arrivalOf, type LocalModel, localModelIds } from '../store/hub-cache.ts';
import { capabilitiesOf } from '../supervisor/choose-model.ts';
import type { CompileContext } from './compile-context.ts';
import type { Downloads } from './downloads.ts';
import { wouldServe } from './ensure-compiled.ts';
import type { ModelSlot } from './model-slot.ts';
import { oneRunAtATime } from './one-run-at-a-time.ts';

export interface ModelListOptions {
  slots: ReadonlyMap<ModelId, Pick<ModelSlot, 'view' | 'compiled' | 'info' | 'work' | 'isReading'>>;
  downloads: Pick<Downloads, 'models' | 'statusOf'>;
  calibrations: Pick<Calibrations, 'find'>;
  compile: CompileContext;
  /** Returns the model's files on this machine; null if a usable set is not there. */
  find(model: ModelId): Promise<LocalModel | null>;
}

/** Lists the models of this machine with their status, from the slots, the downloads and the files in the store. */
export class ModelList {
  readonly #options: ModelListOptions;

  constructor(options: ModelListOptions) {
    this.#options = options;
  }

  /**
   * Returns the models in memory, being downloaded, or with a usable set of files in the store, sorted by id.
   * Concurrent callers share a search of the store, because every request for a model that is not loaded asks for this
   * list.
   */
  readonly models = oneRunAtATime(() => this.#models());

  async #models(): Promise<readonly ListedModel[]> {
    const { slots, downloads, compile } = this.#options;
    const ids = new Set([...(await localModelIds(compile.paths)), ...downloads.models, ...slots.keys()]);
    const listed = [...ids].sort().map(async (id) => ({
      id,
      status: await this.#statusOf(id),
      ...(await this.#createdOf(id)),
      ...(await this.#calibrationOf(id)),
      ...this.#abilities(id),
    }));
    return (await Promise.all(listed)).filter((entry): entry is ListedModel => entry.status !== null);
  }

  /** Returns the calibration of a model in memory; null if it has none or is not loaded. */
  async calibration(model: ModelId): Promise<ActiveCalibration | null> {
    const { slots, calibrations } = this.#options;
    const fingerprint = slots.get(model)?.compiled?.record.fingerprint.source;
    return fingerprint ? calibrations.find(model, fingerprint) : null;
  }

  /**
   * Returns the hash of the source files of a loaded model, and its calibration if it has one; empty while the model is
   * not loaded.
   */
  async #calibrationOf(id: ModelId): Promise<Pick<ListedModel, 'fingerprint' | 'calibration'>> {
    const slot = this.#options.slots.get(id);
    const fingerprint = slot?.compiled?.record.fingerprint.source;
    if (slot?.view().state !== 'loaded' || !fingerprint) return {};
    const active = await this.#options.calibrations.find(id, fingerprint);
    if (!active) return { fingerprint };
    const { fitted, kinds } = active.calibration;
    return { fingerprint, calibration: { from: active.from, fitted, kinds } };
  }

  /** Returns what a loaded model can do, and the contract by which it is asked; empty while it is not loaded. */
  #abilities(id: ModelId): Pick<ListedModel, 'capabilities' | 'contract'> {
    const slot = this.#options.slots.get(id);
    if (!slot?.info || slot.view().state !== 'loaded') return {};
    const { contract } = slot.info;
    return { capabilities: capabilitiesOf(slot.info), ...(contract ? { contract } : {}) };
  }

  async #createdOf(id: ModelId): Promise<Pick<ListedModel, 'created'>> {
    const created = await arrivalOf(this.#options.compile.paths, id);
    return created === null ? {} : { created };
  }

  /** Returns the status of a model; null if it is not on this machine. */
  async #statusOf(model: ModelId): Promise<ModelStatus | null> {
    const { slots, downloads, compile, find } = this.#options;
    const slot = slots.get(model);
    const state = slot?.view().state ?? 'unloaded';
    if (state !== 'unloaded') return state === 'loaded' ? 'active' : state;
    const download = downloads.statusOf(model);
    if (download) return download;
    if (slot?.work) return slot.isReading ? 'loading' : 'compiling';
    const local = await find(model).catch((err: unknown) => {
      compile.log.warn({ model, err }, 'a model on this machine cannot be read, so it is not listed');
      return null;
    });
    if (!local) return null;
    const compiled = await listCompiled(compile.paths, model);
    if (compiled.some(({ record }) => wouldServe(compile, local, record.fingerprint))) return 'compiled';
    return local.origin === 'bundled' ? 'available' : 'downloaded';
  }
}

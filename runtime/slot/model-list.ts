import type { ListedModel, ModelStatus } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelCapabilities } from '../../lib/schema/model-list.ts';
import { MOST_OPTIONS } from '../../lib/schema/question-fields.ts';
import type { ActiveCalibration, Calibrations } from '../store/calibrations.ts';
import { listCompiled } from '../store/compiled-store.ts';
import { arrivalOf, type LocalModel, localModelIds } from '../store/hub-cache.ts';
import type { CompileContext } from './compile-context.ts';
import type { Downloads } from './downloads.ts';
import { wouldServe } from './ensure-compiled.ts';
import type { ModelSlot } from './model-slot.ts';
import { oneRunAtATime } from './one-run-at-a-time.ts';

export interface ModelListOptions {
  slot: Pick<ModelSlot, 'view' | 'compiled' | 'info' | 'uses' | 'isReading'>;
  downloads: Pick<Downloads, 'models' | 'statusOf'>;
  calibrations: Pick<Calibrations, 'find'>;
  compile: CompileContext;
  /** Returns the model's files on this machine; null if a usable set is not there. */
  find(model: ModelId): Promise<LocalModel | null>;
}

/** Lists the abilities of a decision model on a language model. */
const DECIDES = { decide: 'options', extract: false, chat: false, abstains: false, max_options: MOST_OPTIONS } as const;
/** Lists the abilities of every model that generates text. */
const GENERATES = { decide: 'any', extract: 'schema', chat: true, abstains: false, max_options: MOST_OPTIONS } as const;

/** Lists the models of this machine with their status, from the slot, the downloads and the files in the store. */
export class ModelList {
  readonly #options: ModelListOptions;

  constructor(options: ModelListOptions) {
    this.#options = options;
  }

  /**
   * Returns the models in the slot, being downloaded, or with a usable set of files in the store, sorted by id.
   * Concurrent callers share a search of the store, because every request for a model that is not loaded asks for this
   * list.
   */
  readonly models = oneRunAtATime(() => this.#models());

  async #models(): Promise<readonly ListedModel[]> {
    const { slot, downloads, compile } = this.#options;
    const { model } = slot.view();
    const ids = new Set([...(await localModelIds(compile.paths)), ...downloads.models, ...(model ? [model] : [])]);
    const listed = [...ids].sort().map(async (id) => ({
      id,
      status: await this.#statusOf(id),
      ...(await this.#createdOf(id)),
      ...(id === model ? { ...(await this.#calibrationOf(id)), ...this.#abilities() } : {}),
    }));
    return (await Promise.all(listed)).filter((entry): entry is ListedModel => entry.status !== null);
  }

  /** Returns the calibration of the loaded model; null if it has none or no model is loaded. */
  async calibration(): Promise<ActiveCalibration | null> {
    const { slot, calibrations } = this.#options;
    const { model } = slot.view();
    const fingerprint = slot.compiled?.record.fingerprint.source;
    return model && fingerprint ? calibrations.find(model, fingerprint) : null;
  }

  /**
   * Returns the hash of the source files of the model in the slot, and its calibration if it has one; empty while the
   * model is not loaded.
   */
  async #calibrationOf(id: ModelId): Promise<Pick<ListedModel, 'fingerprint' | 'calibration'>> {
    const { slot, calibrations } = this.#options;
    const fingerprint = slot.compiled?.record.fingerprint.source;
    if (slot.view().state !== 'loaded' || !fingerprint) return {};
    const active = await calibrations.find(id, fingerprint);
    if (!active) return { fingerprint };
    const { fitted, kinds } = active.calibration;
    return { fingerprint, calibration: { from: active.from, fitted, kinds } };
  }

  /** Returns what the loaded model can do, and the contract by which it is asked; empty while no model is loaded. */
  #abilities(): Pick<ListedModel, 'capabilities' | 'contract'> {
    const { slot } = this.#options;
    const { info } = slot;
    if (!info || slot.view().state !== 'loaded') return {};
    const { contract, maxPromptLen } = info;
    const usual = contract ? DECIDES : GENERATES;
    const capabilities: ModelCapabilities = info.capabilities ?? { ...usual, max_tokens: maxPromptLen };
    return { capabilities, ...(contract ? { contract } : {}) };
  }

  async #createdOf(id: ModelId): Promise<Pick<ListedModel, 'created'>> {
    const created = await arrivalOf(this.#options.compile.paths, id);
    return created === null ? {} : { created };
  }

  /** Returns the status of a model; null if it is not on this machine. */
  async #statusOf(model: ModelId): Promise<ModelStatus | null> {
    const { slot, downloads, compile, find } = this.#options;
    const { model: inSlot, state } = slot.view();
    if (inSlot === model && state !== 'unloaded') return state === 'loaded' ? 'active' : state;
    const download = downloads.statusOf(model);
    if (download) return download;
    if (slot.uses(model)) return slot.isReading(model) ? 'loading' : 'compiling';
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

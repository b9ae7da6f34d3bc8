import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { MODEL_STATES, type ModelEvent, type ModelState, nextState } from '../../lib/models/model-states.ts';
import type { HostedModel } from './hosted-model.ts';

/** Describes what is done to the files of a model, and how far it is. */
interface FileWork {
  state: ModelState;
  bytes: number;
  total: number | null;
}

type RegisteredModel = Pick<HostedModel, 'state' | 'work' | 'isReading' | 'inUse'>;

/**
 * Holds the one state of each model, which routes, the model list and errors read. In memory it is that of the
 * `HostedModel`; work on its files, which a loaded model permits, is its state only while it is not in memory.
 */
export class ModelRegistry<Held extends RegisteredModel = HostedModel> {
  /** The models in memory, being loaded or unloaded, and those that failed to load. */
  readonly hosted = new Map<ModelId, Held>();
  /** Number of times that something done to the files of a model began, ended or came to its next step. */
  changes = 0;
  readonly #files = new Map<ModelId, FileWork>();
  /** Number of loads that have begun but have not reached their model yet, by model. */
  readonly #loads = new Map<ModelId, number>();

  /** Ids of the models that are in memory, or that something is done to. */
  get models(): Iterable<ModelId> {
    return new Set([...this.#files.keys(), ...this.hosted.keys()]);
  }

  stateOf(model: ModelId): ModelState {
    const hosted = this.hosted.get(model);
    if (hosted && hosted.state !== 'unloaded') return hosted.state;
    const files = this.#files.get(model);
    if (files) return files.state;
    // A model that replaces another one is compiled before its state changes.
    if (hosted?.work) return hosted.isReading ? 'loading' : 'compiling';
    return 'unloaded';
  }

  /** Tells whether the files of a model are being downloaded, compiled or deleted. */
  changesFiles(model: ModelId): boolean {
    return this.#files.has(model);
  }

  /** Changes what is done to the files of a model. Throws `operation_in_progress` where the table has no such step. */
  apply(model: ModelId, event: ModelEvent, { bytes = 0, total = null }: Partial<FileWork> = {}): void {
    const before = this.#files.get(model)?.state ?? 'unloaded';
    const state = nextState(before, event);
    if (state !== before) this.changes++;
    if (state === null) this.refuseDuringFileWork(model, event);
    else if (state === 'unloaded') this.#files.delete(model);
    else this.#files.set(model, { state, bytes, total });
  }

  /** Throws `operation_in_progress` while the files of a model change, with the progress in percent if it is known. */
  refuseDuringFileWork(model: ModelId, wanted: ModelEvent): void {
    const work = this.#files.get(model);
    if (!work) return;
    const far = work.total ? ` (${Math.floor((100 * work.bytes) / work.total)} %)` : '';
    const message = `${model} is ${MODEL_STATES[work.state].doing} now${far}. Try to ${wanted} it again when that has finished.`;
    throw new AssayError('operation_in_progress', message, { param: 'model' });
  }

  /** Throws `model_in_use` while a model is in memory, being restarted or being loaded. */
  refuseInUse(model: ModelId): void {
    if (!this.hosted.get(model)?.inUse && !this.#loads.has(model)) return;
    const { doing } = MODEL_STATES[this.hosted.get(model)?.state ?? 'unloaded'];
    throw new AssayError('model_in_use', `${model} is ${doing}. Unload it first: assay unload ${model}`, {
      param: 'model',
    });
  }

  /** Keeps the files of a model for a load that has not reached its model yet. Returns the function that ends this. */
  claim(model: ModelId): () => void {
    const change = (by: number) => {
      const claims = (this.#loads.get(model) ?? 0) + by;
      if (claims > 0) this.#loads.set(model, claims);
      else this.#loads.delete(model);
    };
    change(1);
    return () => change(-1);
  }
}

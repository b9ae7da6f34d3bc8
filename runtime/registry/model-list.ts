import { createHash } from 'node:crypto';
import type { ListedModel, ModelStatus } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { MODEL_STATES } from '../../lib/models/model-states.ts';
import { wordingOf } from '../contracts/assay.ts';
import type { ActiveCalibration, Calibrations } from '../store/calibrations.ts';
import { listCompiled } from '../store/compiled-store.ts';
import { arrivalOf, type LocalModel, localModelIds } from '../store/hub-cache.ts';
import { capabilitiesOf } from '../supervisor/choose-model.ts';
import type { CompileContext } from './ensure-compiled.ts';
import { wouldServe } from './ensure-compiled.ts';
import type { HostedModel } from './hosted-model.ts';
import type { ModelRegistry } from './model-registry.ts';

export interface ModelListOptions {
  registry: Pick<
    ModelRegistry<Pick<HostedModel, 'state' | 'compiled' | 'info' | 'work' | 'isReading' | 'inUse'>>,
    'hosted' | 'models' | 'stateOf' | 'changes'
  >;
  calibrations: Pick<Calibrations, 'find'>;
  compile: CompileContext;
  /** Returns the model's files on this machine; null if a usable set is not there. */
  find(model: ModelId): Promise<LocalModel | null>;
  /** Returns the current time in milliseconds. Default: `performance.now()`. */
  now?(): number;
}

/** Number of stored models above which a search of their files is used again for a while. */
const MANY = 200;
/** Time for which such a search is used again: so many times as long as it took, but at most `MOST_REUSED_MS`. */
const REUSED = 20;
const MOST_REUSED_MS = 30_000;

/** Describes what the files of the models in the store say. */
type Stored = ReadonlyMap<ModelId, Pick<ListedModel, 'created'> & { status: ModelStatus | null }>;

/** Returns a calibration without thresholds that were certified for another model, number format or wording. */
function withoutVoid(active: ActiveCalibration, policyFingerprint: string | undefined): ActiveCalibration {
  const { thresholds, ...calibration } = active.calibration;
  if (!thresholds || thresholds.fingerprint === policyFingerprint) return active;
  return { ...active, calibration };
}

/** Lists the models of this machine with their status, from the registry and the files in the store. */
export class LocalModelList {
  readonly #options: ModelListOptions;
  readonly #now: () => number;
  /** The last search of many models, while it is used again. */
  #found: { stored: Stored; until: number; changes: number } | null = null;

  constructor(options: ModelListOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * Returns the models in memory, being downloaded, or with a usable set of files in the store, sorted by id.
   * Concurrent callers share a search of the store, because every request for a model that is not loaded asks for this
   * list.
   */
  readonly models = oneRunAtATime(() => this.#models());

  async #models(): Promise<readonly ListedModel[]> {
    const { registry } = this.#options;
    const stored = await this.#stored();
    const listed = [...new Set([...stored.keys(), ...registry.models])].sort().map(async (id) => ({
      id,
      ...stored.get(id),
      status: MODEL_STATES[registry.stateOf(id)].listed ?? stored.get(id)?.status ?? null,
      ...(await this.#calibrationOf(id)),
      ...this.#abilities(id),
    }));
    return (await Promise.all(listed)).filter((entry): entry is ListedModel => entry.status !== null);
  }

  /**
   * Searches the store, or returns what the last search of many models found. Other programs may change the files
   * meanwhile; what this one does to them makes it search again.
   */
  async #stored(): Promise<Stored> {
    const { registry, compile } = this.#options;
    const { changes } = registry;
    const begin = this.#now();
    if (this.#found && begin < this.#found.until && changes === this.#found.changes) return this.#found.stored;
    const ids = await localModelIds(compile.paths);
    const found = ids.map(
      async (id) => [id, { status: await this.#statusOf(id), ...(await this.#createdOf(id)) }] as const,
    );
    const stored = new Map(await Promise.all(found));
    const end = this.#now();
    const until = end + Math.min(MOST_REUSED_MS, REUSED * (end - begin));
    this.#found = ids.length > MANY ? { stored, until, changes } : null;
    return stored;
  }

  /** Returns the calibration of a model in memory; null if it has none or is not loaded. */
  async calibration(model: ModelId): Promise<ActiveCalibration | null> {
    const fingerprint = this.#options.registry.hosted.get(model)?.compiled?.record.fingerprint.source;
    const active = fingerprint ? await this.#options.calibrations.find(model, fingerprint) : null;
    return active && withoutVoid(active, this.#policyFingerprint(model));
  }

  /** Returns the hash of what decides the probabilities of a loaded model; undefined if it is not loaded. */
  #policyFingerprint(model: ModelId): string | undefined {
    const hosted = this.#options.registry.hosted.get(model);
    const { fingerprint, precision } = hosted?.compiled?.record ?? {};
    if (!fingerprint) return undefined;
    return createHash('sha256')
      .update(JSON.stringify([fingerprint.source, precision ?? null, wordingOf(hosted?.info?.contract)]))
      .digest('hex');
  }

  /**
   * Returns the hash of the source files of a loaded model, and its calibration if it has one; empty while the model is
   * not loaded.
   */
  async #calibrationOf(id: ModelId): Promise<Pick<ListedModel, 'fingerprint' | 'policy_fingerprint' | 'calibration'>> {
    const hosted = this.#options.registry.hosted.get(id);
    const fingerprint = hosted?.compiled?.record.fingerprint.source;
    if (hosted?.state !== 'loaded' || !fingerprint) return {};
    const policy = this.#policyFingerprint(id);
    const known = { fingerprint, ...(policy === undefined ? {} : { policy_fingerprint: policy }) };
    const active = await this.#options.calibrations.find(id, fingerprint);
    if (!active) return known;
    const { fitted, kinds, thresholds } = withoutVoid(active, policy).calibration;
    return { ...known, calibration: { from: active.from, fitted, kinds, ...(thresholds ? { thresholds } : {}) } };
  }

  /** Returns what a loaded model can do, and the contract by which it is asked; empty while it is not loaded. */
  #abilities(id: ModelId): Pick<ListedModel, 'capabilities' | 'contract'> {
    const hosted = this.#options.registry.hosted.get(id);
    if (!hosted?.info || hosted.state !== 'loaded') return {};
    const { contract } = hosted.info;
    return { capabilities: capabilitiesOf(hosted.info), ...(contract ? { contract } : {}) };
  }

  async #createdOf(id: ModelId): Promise<Pick<ListedModel, 'created'>> {
    const created = await arrivalOf(this.#options.compile.paths, id);
    return created === null ? {} : { created };
  }

  /** Returns the status that a model has by its files alone; null if no usable set is on this machine. */
  async #statusOf(model: ModelId): Promise<ModelStatus | null> {
    const { compile, find } = this.#options;
    const local = await find(model).catch((err: unknown) => {
      compile.log.warn({ model, err }, 'a model on this machine cannot be read, so it is not listed');
      return null;
    });
    if (!local) return null;
    const compiled = await listCompiled(compile.paths, model);
    if (compiled.some(({ record }) => wouldServe(compile, local, record))) return 'compiled';
    return local.origin === 'bundled' ? 'available' : 'downloaded';
  }
}

/**
 * Wraps an operation so that it runs at most once at a time, whatever the number of callers. Callers that come during a
 * run share the next one, so a result is never older than the call.
 */
export function oneRunAtATime<T>(operation: () => Promise<T>): () => Promise<T> {
  /** Settles when the run under way has ended; null if there is none. */
  let running: Promise<void> | null = null;
  let next: Promise<T> | null = null;
  function start(): Promise<T> {
    next = null;
    const run = operation();
    const end = () => {
      running = null;
    };
    running = run.then(end, end);
    return run;
  }
  return () => {
    if (!running) return next ?? start();
    next ??= running.then(start);
    return next;
  };
}

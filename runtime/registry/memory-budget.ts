import { AssayError } from '../../lib/errors.ts';
import { formatBytes } from '../../lib/format-bytes.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { expectedBytes } from '../supervisor/children/model-limits.ts';
import type { HostedModel } from './hosted-model.ts';

/** Settings for models that are loaded beside each other. */
export interface MemorySettings {
  /** Bytes that the models in memory may need together. */
  budgetBytes: number;
  /** True if a load that does not fit unloads the models that were used least recently; false if it is refused. */
  evict: boolean;
}

type Held = Pick<HostedModel, 'model' | 'state' | 'usedAt' | 'engine'>;

/** Holds the models in memory to a number of bytes. A model counts with what it needs, or more if it took more. */
export class MemoryBudget {
  readonly #settings: MemorySettings | undefined;
  readonly #unload: (model: ModelId) => Promise<void>;
  readonly #expected = new Map<ModelId, number>();
  /** Models that have a reservation but may not be in memory yet. */
  readonly #reserved = new Set<ModelId>();

  /** @param settings absent: any number of bytes may be needed */
  constructor(settings: MemorySettings | undefined, unload: (model: ModelId) => Promise<void>) {
    this.#settings = settings;
    this.#unload = unload;
  }

  /** Returns the bytes that a model counts with. */
  bytesOf({ model, engine }: Held): number {
    return Math.max(this.#expected.get(model) ?? 0, engine.status().rssBytes ?? 0);
  }

  figures(held: readonly Held[]): { usedBytes: number; budgetBytes: number } {
    const usedBytes = held.filter((one) => this.#counts(one)).reduce((sum, one) => sum + this.bytesOf(one), 0);
    return { usedBytes, budgetBytes: this.#settings?.budgetBytes ?? Number.POSITIVE_INFINITY };
  }

  /**
   * Counts a compiled model as held, beside `others`. If it does not fit, unloads those that were used least recently,
   * or throws `memory_full` with the sums.
   *
   * @param evict replaces `MemorySettings.evict`
   */
  async reserve(wanted: Held, directory: string, others: readonly Held[], evict?: boolean): Promise<void> {
    const needed = await expectedBytes(directory);
    const before = this.#expected.get(wanted.model);
    this.#expected.set(wanted.model, needed);
    this.#reserved.add(wanted.model);
    if (!this.#settings) return;
    const { budgetBytes } = this.#settings;
    const held = others.filter((one) => this.#counts(one));
    let free = budgetBytes - this.figures(held).usedBytes;
    if (needed <= free) return;
    const evicted: ModelId[] = [];
    if (evict ?? this.#settings.evict) {
      // A model whose process is busy with a request is in use now.
      const age = (one: Held) => (one.engine.status().admitted > 0 ? Number.POSITIVE_INFINITY : one.usedAt);
      const idle = held
        .filter(({ state }) => state === 'loaded' || state === 'restarting')
        .sort((a, b) => age(a) - age(b));
      for (const one of idle) {
        if (needed <= free) break;
        free += this.bytesOf(one);
        evicted.push(one.model);
      }
    }
    if (needed > free) {
      if (before === undefined) this.#expected.delete(wanted.model);
      else this.#expected.set(wanted.model, before);
      this.settle(wanted.model);
      throw this.#refusal(wanted.model, needed, held);
    }
    for (const model of evicted) await this.#unload(model);
  }

  /** Ends the reservation of a model, because its load has ended. */
  settle(model: ModelId): void {
    this.#reserved.delete(model);
  }

  #counts({ model, state }: Held): boolean {
    return (state !== 'unloaded' && state !== 'failed') || this.#reserved.has(model);
  }

  #refusal(model: ModelId, needed: number, held: readonly Held[]): AssayError {
    const budget = formatBytes(this.#settings?.budgetBytes ?? 0);
    const sums = held.map((one) => `${one.model} ${formatBytes(this.bytesOf(one))}`).join(', ');
    const advice =
      held.length === 0
        ? 'Give the models more memory with assay serve --memory, or load a smaller one.'
        : 'Unload one (assay unload <model>), load with --evict, or give more with assay serve --memory.';
    const taken = held.length === 0 ? '' : `, of which are taken: ${sums}`;
    const message = `${model} needs about ${formatBytes(needed)}, and models may have ${budget}${taken}. ${advice}`;
    return new AssayError('memory_full', message, { param: 'model' });
  }
}

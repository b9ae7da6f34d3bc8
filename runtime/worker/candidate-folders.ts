import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { PlannedGraphs } from '../compile/planned-graphs.ts';
import type { CompileProgress } from '../protocol/messages.ts';

/**
 * Writes the precisions of a model to separate subfolders of the target, in which they are measured. One of them
 * becomes the result.
 */
export class CandidateFolders {
  readonly #target: string;
  readonly #onStep: (step: CompileProgress) => void;
  readonly #signal: AbortSignal | undefined;
  #done = 0;
  #total = 0;

  constructor(target: string, onStep: (step: CompileProgress) => void, signal: AbortSignal | undefined) {
    this.#target = target;
    this.#onStep = onStep;
    this.#signal = signal;
    mkdirSync(target, { recursive: true });
  }

  /** Adds the weight bytes of precisions that will be written to the total of the progress reports. */
  expect(plans: Iterable<PlannedGraphs>): void {
    for (const { bytes } of plans) this.#total += bytes;
  }

  /**
   * Writes the graphs and weights of a precision to the subfolder `name` of the target, reports progress, and returns
   * the subfolder's path. After an abort, throws the signal's reason.
   */
  async write(name: string, plan: PlannedGraphs): Promise<string> {
    const folder = join(this.#target, name);
    await this.#write(folder, plan);
    this.#onStep({ step: 'measuring', done: this.#done, total: this.#total });
    return folder;
  }

  /**
   * Writes graphs and weights into the target folder itself, beside the precision that was kept. After an abort, throws
   * the signal's reason.
   */
  async add(plan: PlannedGraphs): Promise<void> {
    await this.#write(this.#target, plan);
  }

  async #write(folder: string, plan: PlannedGraphs): Promise<void> {
    const onBytes = (count: number): void => {
      this.#done += count;
      this.#onStep({ step: 'weights', done: this.#done, total: this.#total });
    };
    await plan.write(folder, onBytes, this.#signal);
    this.#signal?.throwIfAborted();
  }

  /** Moves the files of the subfolder with the path `folder` into the target folder, and deletes all subfolders. */
  keep(folder: string): void {
    for (const file of readdirSync(folder)) renameSync(join(folder, file), join(this.#target, file));
    for (const entry of readdirSync(this.#target, { withFileTypes: true })) {
      if (entry.isDirectory()) rmSync(join(this.#target, entry.name), { recursive: true });
    }
    this.#onStep({ step: 'graph', done: this.#total, total: this.#total });
  }
}

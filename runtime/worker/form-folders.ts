import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { PlannedGraphs } from '../compile/planned-graphs.ts';
import type { CompileProgress } from '../protocol/messages.ts';

/** Writes forms side by side into folders below the target, one of which becomes the result. */
export class FormFolders {
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

  /** Counts the bytes of forms that will be written, so that the progress knows its end. */
  expect(plans: Iterable<PlannedGraphs>): void {
    for (const { bytes } of plans) this.#total += bytes;
  }

  /** Writes a form and returns its folder. */
  async write(name: string, plan: PlannedGraphs): Promise<string> {
    const folder = join(this.#target, name);
    await this.#write(folder, plan);
    this.#onStep({ step: 'measuring', done: this.#done, total: this.#total });
    return folder;
  }

  /** Writes graphs into the target itself, beside the form that is kept. */
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

  /** Moves the files of one folder into the target, and removes all the others. */
  keep(folder: string): void {
    for (const file of readdirSync(folder)) renameSync(join(folder, file), join(this.#target, file));
    for (const entry of readdirSync(this.#target, { withFileTypes: true })) {
      if (entry.isDirectory()) rmSync(join(this.#target, entry.name), { recursive: true });
    }
    this.#onStep({ step: 'graph', done: this.#total, total: this.#total });
  }
}

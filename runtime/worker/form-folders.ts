import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { PlannedForm } from '../compile/compile-form.ts';
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
  expect(plans: Iterable<PlannedForm>): void {
    for (const { bytes } of plans) this.#total += bytes;
  }

  /** Writes a form and returns its folder. */
  async write(name: string, plan: PlannedForm): Promise<string> {
    const folder = join(this.#target, name);
    const onBytes = (count: number): void => {
      this.#done += count;
      this.#onStep({ step: 'weights', done: this.#done, total: this.#total });
    };
    await plan.write(folder, onBytes, this.#signal);
    this.#signal?.throwIfAborted();
    this.#onStep({ step: 'measuring', done: this.#done, total: this.#total });
    return folder;
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

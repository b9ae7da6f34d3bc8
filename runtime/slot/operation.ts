/**
 * A long piece of work that any number of callers follow: it goes on when they leave, and who comes later sees where it is.
 * Progress that nobody has read yet is replaced by newer progress, so a slow reader holds nothing up.
 */
export class Operation<Progress, Result> {
  readonly result: Promise<Result>;
  #latest: Progress | null = null;
  #ended = false;
  #version = 0;
  #changed = Promise.withResolvers<void>();

  constructor(work: (report: (progress: Progress) => void) => Promise<Result>) {
    this.result = work((progress) => {
      this.#latest = progress;
      this.#version += 1;
      this.#wake();
    }).finally(() => {
      this.#ended = true;
      this.#wake();
    });
    // Nobody may be listening; those who are get the error from `result`.
    this.result.catch(() => undefined);
  }

  /** The progress last reported; null before the first. */
  get latest(): Progress | null {
    return this.#latest;
  }

  /** Progress from now on, then the result. Throws what the work threw. */
  async *follow(): AsyncGenerator<Progress, Result> {
    let seen = 0;
    for (;;) {
      const changed = this.#changed.promise;
      if (this.#version > seen && this.#latest !== null) {
        seen = this.#version;
        yield this.#latest;
      } else if (this.#ended) {
        return await this.result;
      } else {
        await changed;
      }
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

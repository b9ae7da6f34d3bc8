/** Finds stop strings in streamed text. Holds back what may still become one. */
export class StopScanner {
  readonly #stops: readonly string[];
  #held = '';
  #stopped = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '');
  }

  /** True when a stop string was found. It and everything after it is never returned. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Returns the text that cannot be part of a stop string any more. */
  push(text: string): string {
    if (this.#stopped) return '';
    this.#held += text;
    const found = this.#stops.map((stop) => this.#held.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) {
      this.#stopped = true;
      return this.#take(Math.min(...found));
    }
    return this.#take(this.#held.length - Math.max(0, ...this.#stops.map((stop) => overlap(this.#held, stop))));
  }

  /** Returns the withheld text, when no more text follows. */
  end(): string {
    return this.#stopped ? '' : this.#take(this.#held.length);
  }

  #take(length: number): string {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return text;
  }
}

/** Counts the characters at the end of `text` that begin `stop`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}

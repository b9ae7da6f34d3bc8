import { overlap } from './answer-splitter.ts';

/** Describes a text that ends the scanned text and begins something else, such as a tool call. */
export interface Trigger {
  text: string;
  /** False if it counts only where nothing but white space precedes it. */
  anywhere: boolean;
}

/** Finds the first stop string or trigger in streamed text. Withholds text that may be the beginning of one. */
export class StopScanner {
  readonly #stops: readonly string[];
  #triggers: readonly Trigger[];
  #held = '';
  #end: 'stop' | 'trigger' | null = null;

  constructor(stops: readonly string[], triggers: readonly Trigger[] = []) {
    this.#stops = stops.filter((stop) => stop !== '');
    this.#triggers = triggers;
  }

  /** True if a stop string was found. The stop string and all text after it are discarded. */
  get stopped(): boolean {
    return this.#end === 'stop';
  }

  /** True if a trigger was found, before any stop string. */
  get triggered(): boolean {
    return this.#end === 'trigger';
  }

  /** Adds text. Returns the text that can no longer be part of a stop string or trigger; empty once one was found. */
  push(text: string): string {
    if (this.#end) return '';
    this.#held += text;
    const found = this.#stops.map((stop) => this.#held.indexOf(stop)).filter((at) => at >= 0);
    const stopAt = found.length > 0 ? Math.min(...found) : null;
    const triggerAt = this.#triggerAt();
    if (triggerAt !== null && (stopAt === null || triggerAt < stopAt)) {
      this.#end = 'trigger';
      return this.#take(triggerAt);
    }
    if (stopAt !== null) {
      this.#end = 'stop';
      return this.#take(stopAt);
    }
    const ends = [...this.#stops, ...this.#triggers.map(({ text }) => text)];
    return this.#take(this.#held.length - Math.max(0, ...ends.map((end) => overlap(this.#held, end))));
  }

  /** Returns the text that is still withheld. Must follow the last `push`. */
  end(): string {
    return this.#end ? '' : this.#take(this.#held.length);
  }

  /** Returns the index at which the first trigger begins; null if there is none. */
  #triggerAt(): number | null {
    const found = this.#triggers
      .map(({ text, anywhere }) => ({ at: this.#held.indexOf(text), anywhere }))
      .filter(({ at, anywhere }) => at >= 0 && (anywhere || this.#held.slice(0, at).trim() === ''));
    if (found.length > 0) return Math.min(...found.map(({ at }) => at));
    // Once the text begins differently from such a trigger, that trigger cannot occur any more.
    const begin = this.#held.trimStart();
    this.#triggers = this.#triggers.filter(({ text, anywhere }) => anywhere || text.startsWith(begin));
    return null;
  }

  #take(length: number): string {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return text;
  }
}

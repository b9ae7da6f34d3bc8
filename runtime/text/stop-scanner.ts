import { overlap } from './overlap.ts';

/** Describes a text that ends the scanned text and begins something else, such as a tool call. */
export interface Trigger {
  text: string;
  /** False if it counts only at the beginning of the text, after white space. */
  anywhere: boolean;
}

/** Finds stop strings in streamed text. Withholds text that may be the beginning of a stop string. */
export class StopScanner {
  readonly #stops: readonly string[];
  #trigger: Trigger | null;
  #held = '';
  #end: 'stop' | 'trigger' | null = null;

  constructor(stops: readonly string[], trigger?: Trigger) {
    this.#stops = stops.filter((stop) => stop !== '');
    this.#trigger = trigger ?? null;
  }

  /** True if a stop string was found. The stop string and all text after it are discarded. */
  get stopped(): boolean {
    return this.#end === 'stop';
  }

  /** True if the trigger was found, before any stop string. */
  get triggered(): boolean {
    return this.#end === 'trigger';
  }

  /** Adds text. Returns the text that can no longer be part of a stop string. */
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
    const ends = [...this.#stops, ...(this.#trigger ? [this.#trigger.text] : [])];
    return this.#take(this.#held.length - Math.max(0, ...ends.map((end) => overlap(this.#held, end))));
  }

  /** Returns the text that is still withheld. Must follow the last `push`. */
  end(): string {
    return this.#end ? '' : this.#take(this.#held.length);
  }

  #triggerAt(): number | null {
    if (!this.#trigger) return null;
    const { text, anywhere } = this.#trigger;
    const at = this.#held.indexOf(text);
    if (at >= 0 && (anywhere || this.#held.slice(0, at).trim() === '')) return at;
    // Once the text begins differently from the trigger, the trigger cannot occur any more.
    if (!anywhere && !text.startsWith(this.#held.trimStart())) this.#trigger = null;
    return null;
  }

  #take(length: number): string {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return text;
  }
}

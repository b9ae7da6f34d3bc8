/** Describes a text that ends what is scanned, and begins something else. */
export interface Trigger {
  text: string;
  /** False: it counts only at the beginning, after white space. */
  anywhere: boolean;
}

/** Finds stop strings in streamed text. Holds back what may still become one. */
export class StopScanner {
  readonly #stops: readonly string[];
  #trigger: Trigger | null;
  #held = '';
  #end: 'stop' | 'trigger' | null = null;

  constructor(stops: readonly string[], trigger?: Trigger) {
    this.#stops = stops.filter((stop) => stop !== '');
    this.#trigger = trigger ?? null;
  }

  /** True when a stop string was found. It and everything after it is never returned. */
  get stopped(): boolean {
    return this.#end === 'stop';
  }

  /** True when the trigger was found, before any stop string. */
  get triggered(): boolean {
    return this.#end === 'trigger';
  }

  /** Returns the text that cannot be part of a stop string any more. */
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

  /** Returns the withheld text, when no more text follows. */
  end(): string {
    return this.#end ? '' : this.#take(this.#held.length);
  }

  #triggerAt(): number | null {
    if (!this.#trigger) return null;
    const { text, anywhere } = this.#trigger;
    const at = this.#held.indexOf(text);
    if (at >= 0 && (anywhere || this.#held.slice(0, at).trim() === '')) return at;
    // Text that is no beginning of the trigger rules it out for the rest.
    if (!anywhere && !text.startsWith(this.#held.trimStart())) this.#trigger = null;
    return null;
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

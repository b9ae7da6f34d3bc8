import { type Profiler, Session } from 'node:inspector';

/** Code whose coverage guides the search: Assay's, and that of the libraries that parse untrusted files. */
const WATCHED = /\/(lib|runtime|adapters)\/|@huggingface\/|eventsource-parser/;
/** Classes of counts, as in AFL: a loop that runs twice is news, one that runs 101 times instead of 100 is not. */
const CLASSES = [1, 2, 3, 4, 8, 16, 32, 128];

/** Measures which blocks of code run, with V8's own block coverage (Chrome DevTools Protocol, "Profiler"). */
export class Coverage {
  readonly #session = new Session();
  readonly #seen = new Set<string>();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Blocks, by class of their counts, that have ever run. */
  get size(): number {
    return this.#seen.size;
  }

  /** Returns the number of blocks that ran since the last call and never before; with `keep` they count as seen. */
  news(keep: boolean): number {
    let found = 0;
    for (const feature of this.#take()) {
      if (this.#seen.has(feature)) continue;
      found++;
      if (keep) this.#seen.add(feature);
    }
    return found;
  }

  close(): void {
    this.#session.disconnect();
  }

  #take(): Set<string> {
    let scripts: Profiler.ScriptCoverage[] = [];
    // The call is synchronous: V8 answers before it returns.
    this.#session.post('Profiler.takePreciseCoverage', (error, answer) => {
      if (error) throw error;
      scripts = answer.result;
    });
    const features = new Set<string>();
    for (const { scriptId, url, functions } of scripts) {
      if (!WATCHED.test(url) || url.includes('/tests/')) continue;
      for (const { ranges } of functions) {
        for (const { startOffset, endOffset, count } of ranges) {
          if (count > 0) features.add(`${scriptId}:${startOffset}-${endOffset}:${CLASSES.findLast((c) => c <= count)}`);
        }
      }
    }
    return features;
  }
}

import { createHash } from 'node:crypto';
import { Random } from '../../runtime/engine/random.ts';
import { Coverage } from './coverage.ts';
import { mutate, pick } from './mutate.ts';
import type { FuzzTarget } from './targets.ts';

export interface Finding {
  input: Uint8Array;
  error: unknown;
}

export interface SearchReport {
  runs: number;
  blocks: number;
  /** Inputs that reached new blocks, in the order found. */
  reached: Uint8Array[];
  finding: Finding | null;
}

export interface SearchOptions {
  corpus: readonly Uint8Array[];
  seed: number;
  seconds: number;
  /** Called before every input; for the watch on hangs. */
  onInput(input: Uint8Array): void;
}

/** Inputs between two readings of the coverage, which take longer than most inputs. */
const BATCH = 24;

/**
 * Searches for inputs that break a promise: changes inputs of the corpus at random and keeps those that reach code not
 * reached before (as AFL and libFuzzer do). The same seed makes the same inputs.
 */
export async function search(target: FuzzTarget, options: SearchOptions): Promise<SearchReport> {
  const { seed, seconds, onInput } = options;
  const random = new Random(seed);
  const coverage = new Coverage();
  const known = [...options.corpus];
  const seen = new Set(known.map(hashOf));
  const report: SearchReport = { runs: 0, blocks: 0, reached: [], finding: null };
  const run = async (input: Uint8Array): Promise<boolean> => {
    report.runs++;
    onInput(input);
    try {
      await target.run(input);
      return true;
    } catch (error) {
      report.finding = { input, error };
      return false;
    }
  };
  try {
    for (const input of known) if (!(await run(input))) return report;
    coverage.news(true);
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const batch = Array.from({ length: BATCH }, () =>
        mutate(random, pick(random, known), pick(random, known), target.words),
      );
      for (const input of batch) if (!(await run(input))) return report;
      if (coverage.news(false) === 0) continue;
      for (const input of batch) {
        if (!(await run(input))) return report;
        if (coverage.news(true) === 0 || seen.has(hashOf(input))) continue;
        seen.add(hashOf(input));
        known.push(input);
        report.reached.push(input);
      }
    }
    return report;
  } finally {
    report.blocks = coverage.size;
    coverage.close();
  }
}

const hashOf = (input: Uint8Array): string => createHash('sha256').update(input).digest('hex').slice(0, 16);

import { at } from '../lib/at.ts';
/** Describes one figure of a benchmark. `npm run bench -- <name> --json` prints one a line. */
export interface Figure {
  bench: string;
  /** The measured system: Assay, or a peer. */
  system: string;
  case: string;
  metric: string;
  value: number;
  unit: string;
}

export type Report = (figure: Omit<Figure, 'bench'>) => void;

/** Returns the value at this quantile of sorted values (nearest rank). */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))] ?? Number.NaN;
}

/** Returns the median; of an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const upper = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? at(sorted, upper) : (at(sorted, upper - 1) + at(sorted, upper)) / 2;
}

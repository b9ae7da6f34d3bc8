import { at } from '../lib/at.ts';
/** Holds one figure of a benchmark. `npm run bench -- <name> --json` prints each figure on a line. */
export interface Figure {
  bench: string;
  /** Measured system, such as Assay or a program that it is compared with. */
  system: string;
  case: string;
  metric: string;
  value: number;
  unit: string;
}

export type Report = (figure: Omit<Figure, 'bench'>) => void;

/** Returns a quantile of sorted values by nearest rank; NaN if there are no values. `part` is from 0 to 1. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))] ?? Number.NaN;
}

/** Returns the median, for an even number of values the mean of the middle two; NaN if there are no values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const upper = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? at(sorted, upper) : (at(sorted, upper - 1) + at(sorted, upper)) / 2;
}

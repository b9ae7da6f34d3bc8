/** One figure of a benchmark. `npm run bench -- <name> --json` prints one of these a line. */
export interface Figure {
  bench: string;
  /** What was measured: ours, or what it is compared with. */
  system: string;
  case: string;
  metric: string;
  value: number;
  unit: string;
}

export type Report = (figure: Omit<Figure, 'bench'>) => void;

/** The value below which this part of the sorted values lies (nearest rank). */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(
    [...values].sort((one, other) => one - other),
    0.5,
  );
}

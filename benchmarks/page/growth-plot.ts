import { type Panel, plot } from '../plot.ts';
import type { Figure } from '../report.ts';

export interface Growth {
  title: string;
  /** Matches the names of the cases in this panel. Captures the number that is the position on the x axis. */
  pattern: RegExp;
}

/**
 * Plots the medians of figures over a number in the names of their cases, both on logarithmic axes. Returns an SVG;
 * undefined if no panel has at least two positions.
 */
export function growthPlot(
  title: string,
  figures: readonly Figure[],
  label: string,
  wanted: readonly Growth[],
): string | undefined {
  const medians = figures.filter(({ metric }) => metric === 'median');
  // All panels have the same series in the same order, because they share one legend.
  const names = [...new Set(medians.map(({ system }) => system))];
  const panels = wanted.flatMap(({ title, pattern }): Panel[] => {
    const points = medians.flatMap(({ system, case: what, value }) => {
      const at = pattern.exec(what)?.[1];
      return at === undefined ? [] : [{ system, at: Number(at), value }];
    });
    const places = [...new Set(points.map(({ at }) => at))].sort((a, b) => a - b);
    if (places.length < 2) return [];
    const values = points.map(({ value }) => value);
    const series = names.map((name) => ({
      name,
      points: points
        .filter(({ system }) => system === name)
        .sort((a, b) => a.at - b.at)
        .map(({ at, value }) => [at, value] as const),
    }));
    const x = { label, scale: 'log', ticks: places } as const;
    return [
      {
        title,
        series,
        x,
        scale: 'log',
        min: 10 ** Math.floor(Math.log10(Math.min(...values))),
        max: 10 ** Math.ceil(Math.log10(Math.max(...values))),
      },
    ];
  });
  return panels.length > 0 ? plot(title, panels) : undefined;
}

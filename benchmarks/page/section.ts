import { at } from '../../lib/at.ts';
import type { Figure } from '../report.ts';
import type { Goal } from './goals.ts';
import { type Label, shown, table } from './table.ts';

/** Describes the section of the page about one benchmark. */
export interface Section {
  bench: string;
  title: string;
  /** Returns what a user can expect, in one to three sentences; empty if the figures for it are missing. */
  answer(figures: readonly Figure[]): string;
  /** Returns paragraphs about what was measured, and how. */
  method(figures: readonly Figure[]): readonly string[];
  tables(figures: readonly Figure[]): string[];
  /** Returns the SVG of a plot to show above the tables; undefined if there are no figures for it. */
  plot?(figures: readonly Figure[]): string | undefined;
  /** Name of a plot file in docs/ that the benchmark itself writes. */
  image?: string;
  /** Returns the goals with the measured figures. */
  goals?(figures: readonly Figure[]): Goal[];
}

export const systemOf: Label = ({ system }) => system;
export const caseOf: Label = ({ case: what }) => what;
export const metricOf: Label = ({ metric }) => metric;

/** Metrics that `medianAndRange` shows in one cell of a table. */
export const RANGE: ReadonlySet<string> = new Set(['median', 'least', 'most']);

/** Formats one table, with a row for each metric of each case and a column for each system. */
export function byCase(figures: readonly Figure[]): string[] {
  return [table(figures, ({ case: what, metric }) => `${what}: ${metric}`, systemOf)];
}

/**
 * Formats a table for each metric, with a row for each case and a column for each system. If all values of a metric are
 * equal, returns one sentence instead.
 */
export function byMetric(figures: readonly Figure[]): string[] {
  return [...new Set(figures.map(metricOf))].flatMap((metric) => {
    const title = `${at(metric, 0).toUpperCase()}${metric.slice(1)}`;
    const own = figures.filter((figure) => figure.metric === metric);
    const { value, unit } = at(own, 0);
    if (own.length > 2 && own.every((figure) => figure.value === value)) {
      return [`${title}: ${shown(value)} ${unit} in each case.`];
    }
    return [`${title}:`, table(own, caseOf, systemOf)];
  });
}

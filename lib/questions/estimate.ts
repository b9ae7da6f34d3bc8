import { at } from '../at.ts';
import type { ExtractionField } from '../schema/extractions-request.ts';

type EstimateField = Extract<ExtractionField, { type: 'estimate' }>;

/** Most points of a grid that a field's `step` determines: with the two options beyond it, a question has 255. */
const MOST_POINTS = 253;
/** Points of a grid without a step, or with too small a one. */
const COARSE_POINTS = 101;
const DAY_MS = 86_400_000;

/** Holds the values among which an estimate is scored, ascending. Dates are days since 1970-01-01. */
export interface Grid {
  points: readonly number[];
  dates: boolean;
  /** Distance to whose multiples, from the first point, values are rounded; absent: they are not. */
  step?: number;
  /** Texts of the options: one for each point and, between numbers, one below the first and one above the last. */
  options: readonly string[];
}

/** Returns the grid of a field: its steps from `min` to `max` if they are few enough, else 101 points. */
export function gridOf(field: EstimateField): Grid {
  const dates = typeof field.min === 'string';
  const [min, max] = [numberOf(field.min), numberOf(field.max)];
  const points = steps(field.step, min, max) ?? spaced(min, max, field.scale === 'log', dates);
  if (dates) return { points, dates, options: points.map(isoDate) };
  const texts = points.map(String);
  const step = typeof field.step === 'number' ? { step: field.step } : {};
  return { points, dates, ...step, options: [`below ${at(texts, 0)}`, ...texts, `above ${texts.at(-1)}`] };
}

function numberOf(bound: number | string): number {
  return typeof bound === 'number' ? bound : Date.parse(`${bound}T00:00:00Z`) / DAY_MS;
}

function isoDate(day: number): string {
  return new Date(Math.round(day) * DAY_MS).toISOString().slice(0, 10);
}

function steps(step: EstimateField['step'], min: number, max: number): number[] | null {
  if (step === undefined) return null;
  const points: number[] = [];
  for (let i = 0; ; i++) {
    const point = typeof step === 'number' ? exact(min + i * step) : monthsAfter(min, step === 'year' ? 12 * i : i);
    if (point > max) return points;
    if (points.length === MOST_POINTS) return null;
    points.push(point);
  }
}

/** Returns the day some months after another, or the last day of that month if it has no such day. */
function monthsAfter(day: number, months: number): number {
  const from = new Date(day * DAY_MS);
  const last = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months + 1, 0));
  const within = Math.min(from.getUTCDate(), last.getUTCDate());
  return last.setUTCDate(within) / DAY_MS;
}

function spaced(min: number, max: number, log: boolean, whole: boolean): number[] {
  const points = Array.from({ length: COARSE_POINTS }, (_, i) => {
    const share = i / (COARSE_POINTS - 1);
    const point = log ? min * (max / min) ** share : min + (max - min) * share;
    return whole ? Math.round(point) : log ? Number(point.toPrecision(6)) : exact(point);
  });
  points[0] = min;
  points[points.length - 1] = max;
  return [...new Set(points)].sort((a, b) => a - b);
}

/** Removes the rounding errors of a sum of decimal fractions. */
function exact(value: number): number {
  return Number(value.toPrecision(12));
}

/**
 * Returns the answer to an estimate, without its type. A point of the grid stands for the values up to halfway to its
 * neighbours, all of which are equally probable; quantiles are interpolated between these.
 *
 * @param logprobs natural logarithms of the probabilities of `grid.options`, which sum to 1
 * @param quantiles true for the 99 percentiles, too
 */
export function estimateOf({ points, dates, step }: Grid, logprobs: readonly number[], quantiles: boolean): object {
  const all = logprobs.map(Math.exp);
  const inside = dates ? all : all.slice(1, -1);
  const mass = inside.reduce((sum, p) => sum + p, 0);
  const shares = inside.map((p) => (mass > 0 ? p / mass : 1 / inside.length));
  const shown = (value: number) => (dates ? isoDate(value) : exact(value));
  const mean = points.reduce((sum, point, i) => sum + point * at(shares, i), 0);
  // Clients with whole steps expect whole quantiles.
  const rounded = (value: number) =>
    step === undefined ? value : at(points, 0) + Math.round((value - at(points, 0)) / step) * step;
  const quantile = (share: number) => shown(rounded(quantileOf(points, shares, share)));
  const nearest = points.reduce((best, point) => (Math.abs(point - mean) < Math.abs(best - mean) ? point : best));
  return {
    value: shown(step === undefined ? nearest : rounded(mean)),
    mean: shown(mean),
    median: quantile(0.5),
    p10: quantile(0.1),
    p90: quantile(0.9),
    ...(dates ? {} : { p_below: at(all, 0), p_above: at(all, all.length - 1) }),
    ...(quantiles ? { quantiles: Array.from({ length: 99 }, (_, i) => quantile((i + 1) / 100)) } : {}),
  };
}

function quantileOf(points: readonly number[], shares: readonly number[], share: number): number {
  let before = 0;
  for (const [i, own] of shares.entries()) {
    if (before + own >= share && own > 0) {
      const point = at(points, i);
      const low = i === 0 ? point : (at(points, i - 1) + point) / 2;
      const high = i === points.length - 1 ? point : (point + at(points, i + 1)) / 2;
      return low + ((share - before) / own) * (high - low);
    }
    before += own;
  }
  return at(points, points.length - 1);
}

import type { Figure } from '../report.ts';
import { shown } from './table.ts';

/** What a benchmark was to show, and the figure that says whether it does. */
export interface Goal {
  /** With the place where it was measured: `health, p99, at 1,000 clients`. */
  what: string;
  wanted: { most: number } | { least: number };
  measured: number;
  unit: string;
  /** Said where it is missed. */
  why?: string;
}

export function isMet({ wanted, measured }: Goal): boolean {
  return 'most' in wanted ? measured <= wanted.most : measured >= wanted.least;
}

/** Of several figures the one that is furthest from what is wanted; none where there are no figures. */
export function worstOf(what: string, wanted: Goal['wanted'], figures: readonly Figure[], why?: string): Goal[] {
  const sorted = figures.toSorted((one, other) => one.value - other.value);
  const worst = 'most' in wanted ? sorted.at(-1) : sorted[0];
  if (!worst) return [];
  const { case: place, value: measured, unit } = worst;
  const where = figures.length > 1 ? `${what} (worst: ${place})` : what;
  return [{ what: where, wanted, measured, unit, ...(why ? { why } : {}) }];
}

/** A list, a line for each goal. */
export function goalsText(goals: readonly Goal[]): string {
  if (goals.length === 0) return '';
  return ['What was aimed for:', '', ...goals.map((goal) => `- ${goalText(goal)}`)].join('\n');
}

export function goalText(goal: Goal): string {
  const { what, wanted, measured, unit, why } = goal;
  const bound = 'most' in wanted ? `at most ${shown(wanted.most)}` : `at least ${shown(wanted.least)}`;
  const said = `${what}: ${`${shown(measured)} ${unit}`.trim()}, wanted ${bound}.`;
  return isMet(goal) ? `Reached: ${said}` : `**Missed**: ${said}${why ? ` ${why}` : ''}`;
}

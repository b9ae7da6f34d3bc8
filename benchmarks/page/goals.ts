import type { Figure } from '../report.ts';
import { shown } from './table.ts';

/** Describes a goal of a benchmark and the measured figure that is compared with it. */
export interface Goal {
  /** Name of the measured figure, with its case, such as `health, p99, at 1,000 clients`. */
  what: string;
  wanted: { most: number } | { least: number };
  measured: number;
  unit: string;
  /** Reason that is shown if the goal was missed. */
  why?: string;
}

export function isMet({ wanted, measured }: Goal): boolean {
  return 'most' in wanted ? measured <= wanted.most : measured >= wanted.least;
}

/** Returns a list with one goal, whose measured figure is the worst of `figures`; an empty list if there are none. */
export function worstOf(what: string, wanted: Goal['wanted'], figures: readonly Figure[], why?: string): Goal[] {
  const sorted = figures.toSorted((one, other) => one.value - other.value);
  const worst = 'most' in wanted ? sorted.at(-1) : sorted[0];
  if (!worst) return [];
  const { case: place, value: measured, unit } = worst;
  const where = figures.length > 1 ? `${what} (worst: ${place})` : what;
  return [{ what: where, wanted, measured, unit, ...(why ? { why } : {}) }];
}

/** Returns the goals as a Markdown list. */
export function goalsText(goals: readonly Goal[]): string {
  if (goals.length === 0) return '';
  return ['Goals:', '', ...goals.map((goal) => `- ${goalText(goal)}`)].join('\n');
}

export function goalText(goal: Goal): string {
  const { what, wanted, measured, unit, why } = goal;
  const bound = 'most' in wanted ? `at most ${shown(wanted.most)}` : `at least ${shown(wanted.least)}`;
  const said = `${what}: ${`${shown(measured)} ${unit}`.trim()}; goal: ${bound}.`;
  return isMet(goal) ? `Reached: ${said}` : `**Missed**: ${said}${why ? ` ${why}` : ''}`;
}

import type { Figure } from '../report.ts';

export type Label = (figure: Figure) => string;

/**
 * Formats figures as a Markdown table. `row` and `column` say to which row and column a figure belongs; rows are in the
 * order of their first figure. `cell` formats the figures of one cell. Returns an empty text if there are no figures.
 */
export function table(figures: readonly Figure[], row: Label, column: Label, cell = shownTogether): string {
  if (figures.length === 0) return '';
  const rows = [...new Set(figures.map(row))];
  const columns = inOrder([...new Set(figures.map(column))]);
  const lines = rows.map((name) => {
    const own = figures.filter((figure) => row(figure) === name);
    const cells = columns.map((of) => cell(own.filter((figure) => column(figure) === of)));
    return `| ${[name, ...cells].join(' | ')} |`;
  });
  return [`| | ${columns.join(' | ')} |`, `|---|${columns.map(() => '---:|').join('')}`, ...lines, ''].join('\n');
}

/**
 * Sorts names by their leading number if all have one, because the parts of a benchmark may have run in any order.
 * Otherwise keeps the order.
 */
function inOrder(names: string[]): string[] {
  return names.every((name) => /^\d/.test(name))
    ? names.sort((a, b) => Number.parseFloat(a) - Number.parseFloat(b))
    : names;
}

/** Returns the value of the metric `median`, followed by the range from `least` to `most` if these differ. */
export function medianAndRange(figures: readonly Figure[]): string {
  const value = (name: string) => figures.find(({ metric }) => metric === name)?.value;
  const [median, least, most] = [value('median'), value('least'), value('most')];
  if (median === undefined) return '';
  return least === undefined || most === undefined || least === most
    ? shown(median)
    : `${shown(median)} (${shown(least)} to ${shown(most)})`;
}

function shownTogether(figures: readonly Figure[]): string {
  return figures.map(({ value, unit }) => `${shown(value)} ${unit === '1/s' ? 'per s' : unit}`.trim()).join(', ');
}

/** Formats a number with three significant digits; whole numbers, and those of at least 1,000, without decimals. */
export function shown(value: number): string {
  if (Math.abs(value) >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

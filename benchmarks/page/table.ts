import type { Figure } from '../report.ts';

export type Label = (figure: Figure) => string;

/** A Markdown table: a row and a column for each label, in the order in which they come up; `cell` gets the figures that meet there. */
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

/** By number where all begin with one: parts of a benchmark may have been run in any order. */
function inOrder(names: string[]): string[] {
  return names.every((name) => /^\d/.test(name))
    ? names.sort((a, b) => Number.parseFloat(a) - Number.parseFloat(b))
    : names;
}

/** The value of the metric `median`, with `least` and `most` behind it where they differ. */
export function medianAndSpread(figures: readonly Figure[]): string {
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

/** Three digits that count; whole numbers whole. */
export function shown(value: number): string {
  if (Math.abs(value) >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

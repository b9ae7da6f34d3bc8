import type { Figure } from '../report.ts';
import { shown } from './table.ts';

/** Finds the value of one figure; undefined if it was not measured. */
export type Find = (system: string, what: string, metric: string) => number | undefined;

/** Returns a function that finds values among the figures of a benchmark. */
export function finder(figures: readonly Figure[]): Find {
  return (system, what, metric) =>
    figures.find((one) => one.system === system && one.case === what && one.metric === metric)?.value;
}

/** Tags a template: returns its text with formatted numbers, or an empty text if one of the values is undefined. */
export function sentence(texts: TemplateStringsArray, ...values: (number | string | undefined)[]): string {
  if (values.includes(undefined)) return '';
  const words = values.map((value) => (typeof value === 'number' ? shown(value) : (value ?? '')));
  return texts.reduce((said, text, i) => `${said}${words[i - 1] ?? ''}${text}`);
}

/** Divides two values; undefined if one of them is. */
export function ratio(value: number | undefined, by: number | undefined): number | undefined {
  return value === undefined || by === undefined ? undefined : value / by;
}

/** Subtracts two values; undefined if one of them is. */
export function difference(value: number | undefined, less: number | undefined): number | undefined {
  return value === undefined || less === undefined ? undefined : value - less;
}

/** Joins sentences, without the empty ones. */
export function paragraph(...sentences: readonly string[]): string {
  return sentences.filter(Boolean).join(' ');
}

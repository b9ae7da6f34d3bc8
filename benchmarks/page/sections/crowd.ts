import type { Figure } from '../../report.ts';
import { type Goal, worstOf } from '../goals.ts';
import { byMetric, type Section } from '../section.ts';

export const crowd: Section = {
  bench: 'crowd',
  title: 'Requests that come at once',
  about:
    'Chats of 128 + 64 tokens that have nothing in common, and 20 mixed requests: half decide (280 tokens + 1), three ' +
    'in ten extract (280 + 24), two in ten are chats. The same model in every program, each in a process of its own, in ' +
    'turn; medians of the rounds. *One slot* runs one request at a time; *8 slots* is what `assay serve` does. ' +
    'node-llama-cpp runs its sequences in one batch. Then the time between two tokens of seven chats, alone and while ' +
    'a prompt of 4,096 tokens is read.',
  tables: byMetric,
  goals: (figures) => [
    ...times(figures, 'assay int8', '8 chats', 3),
    ...times(figures, 'assay int4', '8 chats', 4),
    ...times(figures, 'assay int8', '16 chats', 5),
    ...smooth(figures),
  ],
};

/** Returns the goal for chats at once: their wall time is at most `most` times that of one chat. */
function times(figures: readonly Figure[], begin: string, crowd: string, most: number): Goal[] {
  const of = (name: string) =>
    figures.find(
      ({ system, case: what, metric }) =>
        system.startsWith(`${begin}, `) && !system.endsWith('one slot') && what === name && metric === 'wall time',
    )?.value;
  const [one, all] = [of('1 chat'), of(crowd)];
  if (one === undefined || all === undefined) return [];
  return [{ what: `${crowd}, ${begin}, of the time of one`, wanted: { most }, measured: all / one, unit: 'times' }];
}

/** Returns the goal for streams: while a long prompt is read, the gap between two tokens at most doubles. */
function smooth(figures: readonly Figure[]): Goal[] {
  const gaps = figures.filter(({ metric }) => metric === 'gap between tokens, p99');
  const alone = new Map(
    gaps.filter(({ case: what }) => what === '7 chats').map(({ system, value }) => [system, value]),
  );
  const ratios = gaps
    .filter(({ case: what }) => what !== '7 chats')
    .map((gap) => ({
      ...gap,
      case: gap.system,
      value: gap.value / (alone.get(gap.system) ?? Number.NaN),
      unit: 'times',
    }));
  return worstOf('gap between tokens beside a long prompt, p99, of that without it', { most: 2 }, ratios);
}

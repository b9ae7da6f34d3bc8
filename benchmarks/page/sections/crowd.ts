import type { Figure } from '../../report.ts';
import { finder, paragraph, sentence } from '../answer.ts';
import { type Goal, worstOf } from '../goals.ts';
import { byMetric, type Section } from '../section.ts';

export const crowd: Section = {
  bench: 'crowd',
  title: 'Requests that come at once',
  answer(figures) {
    const of = finder(figures);
    const time = (system: string) => of(system, '8 chats', 'wall time');
    return paragraph(
      sentence`With 8-bit weights, eight chats at once take ${time('assay int8, 8 slots')} s. One after another they take ${time('assay int8, one slot')} s, and in node-llama-cpp ${time('node-llama-cpp, Q8_0')} s.`,
      sentence`With 4-bit weights, they take ${time('assay int4, 8 slots')} s, ${time('assay int4, one slot')} s and ${time('node-llama-cpp, Q4_0')} s.`,
    );
  },
  method: (figures) => [
    'The requests are chats that read 128 tokens and write 64, with nothing in common, and a mix of 20 requests: half decide ' +
      '(they read 280 tokens and write 1), three in ten extract (280 and 24), and two in ten are chats.',
    'Every program runs the same model. *8 slots* is what `assay serve` does: up to eight requests share each run of the model. ' +
      '*One slot* runs one request at a time. node-llama-cpp runs its sequences in one batch. Figures are medians of the rounds.',
    figures.some(({ metric }) => metric.startsWith('gap'))
      ? 'The gap between tokens is that of seven chats, alone and while a prompt of 4,096 tokens is read.'
      : '',
  ],
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
  return [
    {
      what: `time of ${crowd}, as a multiple of the time of one, ${begin}`,
      wanted: { most },
      measured: all / one,
      unit: 'times',
    },
  ];
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
  return worstOf(
    'gap between tokens while a long prompt is read, p99, as a multiple of the gap without it',
    { most: 2 },
    ratios,
  );
}

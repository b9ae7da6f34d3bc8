import type { Figure } from '../../report.ts';
import type { Goal } from '../goals.ts';
import { growthPlot } from '../growth-plot.ts';
import { caseOf, RANGE, type Section, systemOf } from '../section.ts';
import { medianAndRange, table } from '../table.ts';

/**
 * Goals of Assay's speed on a new context, as a multiple of the speed of node-llama-cpp's fastest mode, by number of
 * tasks.
 */
const WANTED = [
  {
    why: 'With few tasks there is little to share, so the speed of reading the prompt decides.',
    bits: 8,
    gguf: 'Q8_0',
    ratios: { '1 task': 2.2, '16 tasks': 2.9, '64 tasks': 3.2 },
  },
  {
    why: 'With few tasks there is little to share, and Assay takes longer than llama.cpp to unpack 4-bit weights.',
    bits: 4,
    gguf: 'Q4_0',
    ratios: { '1 task': 1.1, '16 tasks': 1.5, '64 tasks': 2 },
  },
] as const;

export const branches: Section = {
  bench: 'branches',
  title: 'Many tasks on one context',
  about:
    'Workload W has a context of 1,024 tokens and tasks of 24 tokens, each answered with 6 tokens. The models ' +
    'have the Qwen2.5-0.5B shape and random weights; the benchmark writes them itself. *Cold*: the context is ' +
    'new. *Context cached*: other tasks were asked about the same context before. Milliseconds, median of the ' +
    'rounds (least to most). node-llama-cpp runs in its two best modes: *one sequence* is cut back to the ' +
    'context for every task; *copied sequences* runs the tasks side by side, with a call that is not in its ' +
    'public API. transformers.js runs the same weights as Assay, with one request for each task; above 4 tasks ' +
    'it was not measured, because its time grows in proportion. Ratios compare with Assay at equal bits. They ' +
    'are computed in each round, and the table shows their median: above 1, Assay is faster. `decide()` is ' +
    'node-llama-cpp’s own call for questions with options; Assay gets as many tokens as it counted. The number ' +
    'of bits is equal, the forms are not: Q8_0 and Q4_0 have a scale for each 32 weights, Assay’s 8 bits have ' +
    'one for each row and each token, and its 4 bits one for each 128 weights.',
  tables(figures) {
    const of = (ending: string) => figures.filter(({ case: what }) => / tasks?, /.test(what) && what.endsWith(ending));
    const decide = figures.filter(({ case: what }) => / questions?, /.test(what));
    const shared = [of('cold'), of('context cached'), decide].flatMap((some) => [
      table(
        some.filter(({ metric }) => RANGE.has(metric)),
        systemOf,
        caseOf,
        medianAndRange,
      ),
      table(
        some.filter(({ metric }) => metric === 'time ratio'),
        systemOf,
        caseOf,
      ),
    ]);
    return [
      ...shared,
      'Time of several tasks, as a multiple of the time of one, cold:',
      table(ofOne(figures), systemOf, caseOf),
    ];
  },
  plot: (figures) =>
    growthPlot('Workload W, milliseconds', figures, 'tasks', [
      { title: 'Cold', pattern: /^(\d+) tasks?, cold$/ },
      { title: 'Context cached', pattern: /^(\d+) tasks?, context cached$/ },
    ]),
  goals: (figures) => [
    ...WANTED.flatMap(({ bits, gguf, ratios, why }) =>
      Object.entries(ratios).flatMap(([tasks, least]): Goal[] => {
        const found = figures.filter(
          ({ system, case: what, metric }) =>
            metric === 'time ratio' && what === `${tasks}, cold` && system.startsWith(`node-llama-cpp, ${gguf},`),
        );
        const measured = Math.min(...found.map(({ value }) => value));
        const what = `${tasks}, cold, ${bits} bits, speed compared with node-llama-cpp’s best mode`;
        return found.length > 0 ? [{ what, wanted: { least }, measured, unit: 'times', why }] : [];
      }),
    ),
    ...ofOne(figures)
      .filter(({ system, case: what }) => system === 'Assay, 8 bits' && what === '16 tasks')
      .map(({ value }) => ({
        what: '16 tasks, as a multiple of the time of one, cold, 8 bits',
        wanted: { most: 1.5 },
        measured: value,
        unit: 'times',
      })),
    ...cachedGain(figures),
  ],
};

function medianOf(figures: readonly Figure[], name: string, what: string): number | undefined {
  return figures.find((one) => one.system === name && one.case === what && one.metric === 'median')?.value;
}

/** Returns the time of several tasks as a multiple of the time of one, for every system that ran both. */
function ofOne(figures: readonly Figure[]): Figure[] {
  return figures.flatMap((figure) => {
    const tasks = /^(\d+ tasks), cold$/.exec(figure.case)?.[1];
    const one = medianOf(figures, figure.system, '1 task, cold');
    if (tasks === undefined || one === undefined || figure.metric !== 'median') return [];
    return [{ ...figure, case: tasks, value: figure.value / one, unit: 'x' }];
  });
}

function cachedGain(figures: readonly Figure[]): Goal[] {
  const cold = medianOf(figures, 'Assay, 8 bits', '1 task, cold');
  const cached = medianOf(figures, 'Assay, 8 bits', '1 task, context cached');
  if (cold === undefined || cached === undefined) return [];
  const what = '1 task, context cached, 8 bits, speed compared with cold';
  return [{ what, wanted: { least: 9 }, measured: cold / cached, unit: 'times' }];
}

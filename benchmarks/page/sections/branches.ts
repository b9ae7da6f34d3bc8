import type { Figure } from '../../report.ts';
import { finder, paragraph, ratio, sentence } from '../answer.ts';
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
  answer(figures) {
    const of = finder(figures);
    const [cold, cached] = [
      of('Assay, 8 bits', '1 task, cold', 'median'),
      of('Assay, 8 bits', '1 task, context cached', 'median'),
    ];
    return paragraph(
      sentence`With 8-bit weights, 16 tasks on a new context take ${ofOneTask(figures, 8)} times as long as one task, and node-llama-cpp’s best mode takes ${bestPeer(figures, 'Q8_0')} times as long as Assay for these 16 tasks.`,
      sentence`With 4-bit weights, the factors are ${ofOneTask(figures, 4)} and ${bestPeer(figures, 'Q4_0')}.`,
      sentence`If the context is cached, one task is ${ratio(cold, cached)} times as fast (8 bits).`,
    );
  },
  method: () => [
    'The workload, called W, is a context of 1,024 tokens with tasks of 24 tokens, each answered with 6 tokens. The models ' +
      'have the shape of Qwen2.5-0.5B and random weights. *Cold*: the context is new. *Context cached*: other tasks about the ' +
      'same context were answered before. The tables show milliseconds: the median of the rounds, then the least and the most.',
    'The programs:',
    [
      '- **node-llama-cpp** runs in its two best modes. *One sequence* is cut back to the context for every task. *Copied ' +
        'sequences* runs the tasks side by side, with a call that is not in its public API.',
      '- **transformers.js** runs the same weights as Assay, with one request for each task. It was not measured above 4 tasks, ' +
        'because its time grows in proportion.',
      '- **`decide()`** is node-llama-cpp’s call for questions with options. Assay’s prompts for it have as many tokens as ' +
        'node-llama-cpp counted.',
    ].join('\n'),
    'Ratios compare programs with equally many bits; above 1, Assay is faster. Each is the median of the ratios of the rounds. ' +
      'The number formats differ: Q8_0 and Q4_0 have a scale for each 32 weights. Assay’s 8 bits have a scale for each ' +
      'output column and each token, and its 4 bits have one for each 128 weights.',
  ],
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

/** Returns Assay's time for 16 tasks as a multiple of its time for one, without a cached context. */
function ofOneTask(figures: readonly Figure[], bits: number): number | undefined {
  return ofOne(figures).find(({ system, case: what }) => system === `Assay, ${bits} bits` && what === '16 tasks')
    ?.value;
}

/** Returns the time of node-llama-cpp's fastest mode for 16 tasks on a new context, as a multiple of Assay's time. */
function bestPeer(figures: readonly Figure[], gguf: string): number | undefined {
  const ratios = figures.filter(
    ({ system, case: what, metric }) =>
      metric === 'time ratio' &&
      what === '16 tasks, cold' &&
      /^node-llama-cpp, .*sequence/.test(system) &&
      system.includes(gguf),
  );
  return ratios.length > 0 ? Math.min(...ratios.map(({ value }) => value)) : undefined;
}

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

import { type Panel, plot } from '../plot.ts';
import type { Figure } from '../report.ts';
import { medianAndSpread, table } from './table.ts';

/** What the page says of a benchmark. */
export interface Section {
  bench: string;
  title: string;
  /** What was measured, and how. */
  about: string;
  tables(figures: readonly Figure[]): string[];
  /** A plot that stands before the tables, where there are figures for it. */
  plot?(figures: readonly Figure[]): string | undefined;
}

const SPREAD = new Set(['median', 'least', 'most']);
const byCase = (figures: readonly Figure[]) => [
  table(
    figures,
    ({ case: what, metric }) => `${what}: ${metric}`,
    ({ system }) => system,
  ),
];

export const SECTIONS: readonly Section[] = [
  {
    bench: 'branches',
    title: 'Many tasks on one context',
    about:
      'Workload W: a context of 1,024 tokens, then tasks of 24 tokens of which each is answered with 6, on models of the Qwen2.5-0.5B shape ' +
      'with random weights, which the benchmark writes itself. *Cold*: nothing is known of the context. *Context cached*: other tasks on a ' +
      'context that was there before. Milliseconds, median of the rounds (least to most). node-llama-cpp runs in its two best modes: *one ' +
      'sequence* is cut back to the context for every task; *copied sequences* run the tasks side by side, by a call that is not in its public ' +
      'API. transformers.js runs the very weights that Assay runs, a request for each task; above 4 tasks it was left out, as it grows in ' +
      'proportion. Ratios are to Assay at equal bits, taken in each round, and their median: above 1, Assay is faster. `decide()` is node-llama-cpp’s own call for ' +
      'questions with options; Assay gets as many tokens as the peer counted.',
    tables(figures) {
      const system = (figure: Figure) => figure.system;
      const of = (ending: string) =>
        figures.filter(({ case: what }) => / tasks?, /.test(what) && what.endsWith(ending));
      const decide = figures.filter(({ case: what }) => / questions?, /.test(what));
      return [of('cold'), of('context cached'), decide].flatMap((some) => [
        table(
          some.filter(({ metric }) => SPREAD.has(metric)),
          system,
          ({ case: what }) => what,
          medianAndSpread,
        ),
        table(
          some.filter(({ metric }) => metric === 'time ratio'),
          system,
          ({ case: what }) => what,
        ),
      ]);
    },
    plot: (figures) =>
      growthPlot('Workload W, milliseconds', figures, 'tasks', [
        { title: 'Cold', pattern: /^(\d+) tasks?, cold$/ },
        { title: 'Context cached', pattern: /^(\d+) tasks?, context cached$/ },
      ]),
  },
  {
    bench: 'speed',
    title: 'Reading and writing tokens',
    about:
      'One prompt, one answer, same models. The limits of the machine are measured in the same run: memory read by all threads at once, and the ' +
      'largest rate of multiply-adds that onnxruntime reaches on one big product of 8-bit integers (4-bit weights are multiplied as 8-bit integers, too). A share ' +
      'is the time that the limit would allow, of the time that was taken: for reading the multiply-adds count, for writing the bytes of weights and KV.',
    tables(figures) {
      const limits = figures.filter(({ system }) => system === 'the machine');
      const rates = figures.filter(({ system }) => system !== 'the machine');
      const system = (figure: Figure) => figure.system;
      const short = ({ case: name }: Figure) => name.replace(/\D+/, '').replace(/ tokens$/, '');
      const of = (title: string, begin: string) => {
        const some = rates.filter(({ case: name }) => name.startsWith(begin));
        const spread = some.filter(({ metric }) => SPREAD.has(metric));
        const shares = some.filter(({ metric }) => metric === 'share of the limit');
        return [
          title,
          table(spread, system, short, medianAndSpread),
          'Share of the limit:',
          table(shares, system, short),
        ];
      };
      return [
        table(limits, ({ metric }) => metric, system),
        ...of('Reading a prompt of so many tokens, tokens a second:', 'reading'),
        ...of('Writing behind so many tokens, tokens a second:', 'writing'),
      ];
    },
    plot: (figures) =>
      growthPlot('Tokens a second', figures, 'tokens', [
        { title: 'Reading', pattern: /^reading (\d+) tokens$/ },
        { title: 'Writing', pattern: /^writing behind (\d+)$/ },
      ]),
  },
  {
    bench: 'http',
    title: 'The whole server',
    about:
      '`assay serve` with the starter model, as it is started by default, under clients that send requests one after another: of ten, five ' +
      'decide, three extract, two are chats, on the texts of the natural test set. The clients run on the same machine and take their share of ' +
      'it. A client that is refused comes back when the server told it to.',
    tables: (figures) => [
      table(
        figures,
        ({ metric }) => metric,
        ({ case: what }) => what,
      ),
    ],
    plot: (figures) =>
      growthPlot(
        'The whole server, milliseconds',
        figures
          .filter(({ metric }) => ['answer, p50', 'answer, p99', 'health, p99'].includes(metric))
          .map((figure) => ({ ...figure, system: figure.metric, metric: 'median' })),
        'clients at once',
        [{ title: 'Time to the whole answer', pattern: /^(\d+) clients?$/ }],
      ),
  },
  {
    bench: 'growth',
    title: 'How cost grows',
    about:
      'Milliseconds of the engine, cold, 8 bits, the same shape. *Perfect* is what an engine would need that reads every token at the best speed ' +
      'seen in this run, and loses nothing.',
    tables: (figures) => [
      table(
        figures,
        ({ case: what }) => what,
        ({ system }) => system,
        medianAndSpread,
      ),
    ],
    plot: (figures) =>
      growthPlot('How cost grows', figures, '', [
        { title: 'Tasks', pattern: /^(\d+) tasks?$/ },
        { title: 'Tokens of context', pattern: /^(\d+) tokens of context$/ },
        { title: 'Options', pattern: /^(\d+) options$/ },
      ]),
  },
  ...(
    [
      [
        'decode',
        'What the engine adds to onnxruntime',
        'One token after another, by the engine and by onnxruntime alone on the same graph.',
      ],
      [
        'process',
        'What the engine process adds',
        'The same, within one process and through messages, detokeniser and backend.',
      ],
      ['memory', 'Memory', 'Peak of the process, beside the bytes of weights and KV.'],
      ['handlers', 'The handlers alone', 'Beside a bare hono route that parses the same JSON and sends the same body.'],
      ['grammar', 'Grammars', 'Compile times, and masks over 150,000 tokens.'],
      ['edge', 'The edge', 'What the Worker adds to a call, beside one that only passes it on.'],
      ['quality', 'Quality', 'How often the starter model is right, over HTTP.'],
    ] as const
  ).map(([bench, title, about]) => ({ bench, title, about, tables: byCase })),
];

interface Growth {
  title: string;
  /** Of the cases that belong here; what it captures is where they stand on the x axis. */
  pattern: RegExp;
}

function growthPlot(
  title: string,
  figures: readonly Figure[],
  label: string,
  wanted: readonly Growth[],
): string | undefined {
  const medians = figures.filter(({ metric }) => metric === 'median');
  const panels = wanted.flatMap(({ title, pattern }): Panel[] => {
    const points = medians.flatMap(({ system, case: what, value }) => {
      const at = pattern.exec(what)?.[1];
      return at === undefined ? [] : [{ system, at: Number(at), value }];
    });
    const places = [...new Set(points.map(({ at }) => at))].sort((a, b) => a - b);
    if (places.length < 2) return [];
    const values = points.map(({ value }) => value);
    const series = [...new Set(points.map(({ system }) => system))].map((name) => ({
      name,
      points: points.filter(({ system }) => system === name).map(({ at, value }) => [at, value] as const),
    }));
    const x = { label, scale: 'log', ticks: places } as const;
    return [
      {
        title,
        series,
        x,
        scale: 'log',
        min: 10 ** Math.floor(Math.log10(Math.min(...values))),
        max: 10 ** Math.ceil(Math.log10(Math.max(...values))),
      },
    ];
  });
  return panels.length > 0 ? plot(title, panels) : undefined;
}

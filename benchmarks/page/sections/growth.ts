import { finder, ratio, sentence } from '../answer.ts';
import { growthPlot } from '../growth-plot.ts';
import { caseOf, type Section, systemOf } from '../section.ts';
import { medianAndRange, table } from '../table.ts';

const ASSAY = 'Assay, 8 bits';
const PARTS = [
  { title: 'Tasks', pattern: /^(\d+) tasks?$/ },
  { title: 'Tokens of context', pattern: /^(\d+) tokens of context$/ },
  { title: 'Options', pattern: /^(\d+) options$/ },
  { title: 'Members of a schema', pattern: /^(\d+) members? of a schema$/ },
];
/** Not in the plot, whose lines go by one number. */
const LONG = { title: 'Long options, which are listed and then scored', pattern: /^\d+ options of \d+ tokens$/ };

export const growth: Section = {
  bench: 'growth',
  title: 'How cost grows',
  answer(figures) {
    const of = finder(figures);
    const growth = (from: string, to: string) => ratio(of(ASSAY, to, 'median'), of(ASSAY, from, 'median'));
    return sentence`64 tasks take ${growth('1 task', '64 tasks')} times as long as one task. A context of 4,096 tokens takes ${growth('1024 tokens of context', '4096 tokens of context')} times as long as one of 1,024, and a question with 64 options ${growth('2 options', '64 options')} times as long as one with two.`;
  },
  method: () => [
    'The engine runs with an empty cache, in 8 bits, on a model in the shape of Qwen2.5-0.5B. Tasks and options are asked on a ' +
      'context of 1,024 tokens. The tables show milliseconds: the median of the rounds, then the least and the most if there ' +
      'was more than one round.',
    '*Perfect* is the time of an ideal engine. It needs for each token, read or chosen, the lowest time per token of this run: ' +
      'its attention does not grow with the context, and no step waits for an earlier choice.',
    'The grammar rows measure checking and compiling a schema and computing its first mask over 150,000 tokens.',
  ],
  tables: (figures) =>
    [...PARTS, LONG].flatMap(({ title, pattern }) => {
      const own = figures.filter(({ case: what }) => pattern.test(what));
      return own.length === 0 ? [] : [`${title}:`, table(own, systemOf, caseOf, medianAndRange)];
    }),
  plot: (figures) => growthPlot('How cost grows, milliseconds', figures, '', PARTS),
};

import { growthPlot } from '../growth-plot.ts';
import { caseOf, type Section, systemOf } from '../section.ts';
import { medianAndRange, table } from '../table.ts';

const PARTS = [
  { title: 'Tasks', pattern: /^(\d+) tasks?$/ },
  { title: 'Tokens of context', pattern: /^(\d+) tokens of context$/ },
  { title: 'Options', pattern: /^(\d+) options$/ },
  { title: 'Members of a schema', pattern: /^(\d+) members? of a schema$/ },
];

export const growth: Section = {
  bench: 'growth',
  title: 'How cost grows',
  about:
    'Milliseconds, median of the rounds (least to most, if there was more than one). The engine runs cold, in ' +
    '8 bits, on the same shape; tasks and options are asked on a context of 1,024 tokens. *Perfect* is the ' +
    'time of an ideal engine, which needs for each token, read or chosen, the least time per token seen in ' +
    'this run: its attention does not grow with the context, and no step waits for an earlier choice. The ' +
    'grammar rows measure checking and compiling a schema and its first mask over 150,000 tokens; a perfect ' +
    'grammar would take no time.',
  tables: (figures) =>
    PARTS.flatMap(({ title, pattern }) => [
      `${title}:`,
      table(
        figures.filter(({ case: what }) => pattern.test(what)),
        systemOf,
        caseOf,
        medianAndRange,
      ),
    ]),
  plot: (figures) => growthPlot('How cost grows, milliseconds', figures, '', PARTS),
};

import { growthPlot } from '../growth-plot.ts';
import { caseOf, type Section, systemOf } from '../section.ts';
import { medianAndSpread, table } from '../table.ts';

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
    'Milliseconds, median of the rounds (least to most, where there was more than one). The engine: cold, 8 bits, the same shape; tasks and options stand on a context of 1,024 tokens. *Perfect* is ' +
    'what an engine would need that takes for every token, read or chosen, the least time for a token that was seen in this run, and loses nothing: no attention that grows with the ' +
    'context, no steps that wait for the choice before. The grammar: a schema checked, compiled, and its first mask over 150,000 tokens; a perfect one would need no time.',
  tables: (figures) =>
    PARTS.flatMap(({ title, pattern }) => [
      `${title}:`,
      table(
        figures.filter(({ case: what }) => pattern.test(what)),
        systemOf,
        caseOf,
        medianAndSpread,
      ),
    ]),
  plot: (figures) => growthPlot('How cost grows, milliseconds', figures, '', PARTS),
};

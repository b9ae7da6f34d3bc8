import type { Figure } from '../../report.ts';
import { finder, paragraph, sentence } from '../answer.ts';
import { growthPlot } from '../growth-plot.ts';
import { metricOf, RANGE, type Section, systemOf } from '../section.ts';
import { medianAndRange, table } from '../table.ts';

export const speed: Section = {
  bench: 'speed',
  title: 'Reading and writing tokens',
  answer(figures) {
    const of = finder(figures);
    const both = (system: string) => [
      of(system, 'reading 1024 tokens', 'median'),
      of(system, 'writing behind 1024', 'median'),
    ];
    const line = (bits: number, gguf: string) => {
      const [[reads, writes], [peerReads, peerWrites]] = [both(`Assay, ${bits} bits`), both(`node-llama-cpp, ${gguf}`)];
      return sentence`With ${bits}-bit weights, Assay reads a prompt of 1,024 tokens at ${reads} tokens a second and then writes ${writes} tokens a second; node-llama-cpp reaches ${peerReads} and ${peerWrites}.`;
    };
    return paragraph(line(8, 'Q8_0'), line(4, 'Q4_0'));
  },
  method: () => [
    'One prompt and one answer, on the same models as above. The tables show tokens a second: the median of the rounds, then ' +
      'the least and the most.',
    'The limits of the machine are measured in the same run: the memory bandwidth of all threads together, and the highest ' +
      'rate of multiply-adds that onnxruntime reaches in one large product of 8-bit integers. 4-bit weights are also ' +
      'multiplied as 8-bit integers.',
    '*Share of the limit* is the time that the limit would allow, divided by the measured time. For reading, the multiply-adds ' +
      'count; for writing, the bytes of weights and KV. No engine reaches the whole limit. A share above 100% means that the ' +
      'limit was measured at a bad moment.',
  ],
  tables(figures) {
    const limits = figures.filter(({ system }) => system === 'the machine');
    const rates = figures.filter(({ system }) => system !== 'the machine');
    const short = ({ case: name }: Figure) => name.replace(/\D+/, '').replace(/ tokens$/, '');
    const of = (title: string, begin: string) => {
      const some = rates.filter(({ case: name }) => name.startsWith(begin));
      const range = some.filter(({ metric }) => RANGE.has(metric));
      const shares = some.filter(({ metric }) => metric === 'share of the limit');
      return [
        title,
        table(range, systemOf, short, medianAndRange),
        'Share of the limit:',
        table(shares, systemOf, short),
      ];
    };
    return [
      table(limits, metricOf, systemOf),
      ...of('Reading a prompt, by its length in tokens (tokens a second):', 'reading'),
      ...of('Writing an answer, by the tokens before it (tokens a second):', 'writing'),
    ];
  },
  plot: (figures) =>
    growthPlot('Tokens a second', figures, 'tokens', [
      { title: 'Reading', pattern: /^reading (\d+) tokens$/ },
      { title: 'Writing', pattern: /^writing behind (\d+)$/ },
    ]),
};

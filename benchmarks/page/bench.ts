import { writeFileSync } from 'node:fs';
import type { Figure } from '../report.ts';
import { keptFigures } from '../results.ts';
import { goalsText, goalText, isMet } from './goals.ts';
import type { Section } from './section.ts';
import { SECTIONS } from './sections/index.ts';

const ROOT = new URL('../../', import.meta.url);

interface Measured {
  section: Section;
  figures: readonly Figure[];
  machine: readonly Figure[];
}

/**
 * Writes docs/performance.md, its plots, and benchmarks/report.md with all sections, from the stored figures. Every
 * statement about figures is derived from them.
 */
export async function run(): Promise<void> {
  const measured = SECTIONS.map((section): Measured => {
    const all = keptFigures(section.bench);
    const isMachine = ({ system }: Figure) => system === 'machine';
    return { section, figures: all.filter((one) => !isMachine(one)), machine: all.filter(isMachine) };
  }).filter(({ figures, machine }) => figures.length + machine.length > 0);
  write('docs/performance.md', shortPage(measured));
  write('benchmarks/report.md', [
    '# Performance report',
    'All figures of [performance](../docs/performance.md), including the disappointing ones. The first section has the ' +
      'results in short.',
    'Compare only figures of the same table. Programs that are compared ran in one run, in turn, each in its own process; ' +
      'other sections ran at other times or on other machines. Each section says when and on which machine it ran, and how ' +
      'busy that machine was with other work. `npm run bench -- <name>` repeats a section, and `npm run bench -- page` ' +
      'writes this page from the stored figures.',
    ...summary(measured),
    missedText(measured),
    ...measured.flatMap(sectionText),
  ]);
  console.error(`Written: ${measured.map(({ section }) => section.bench).join(', ')}`);
}

function write(path: string, parts: readonly string[]): void {
  const text = parts
    .filter(Boolean)
    .join('\n\n')
    .replace(/\n{3,}/g, '\n\n');
  writeFileSync(new URL(path, ROOT), `${text.trimEnd()}\n`);
}

/** Returns the page of one screen: the comparison with other programs, its plot, and where all figures are. */
function shortPage(measured: readonly Measured[]): string[] {
  const missed = measured
    .flatMap(({ section, figures }) => section.goals?.(figures) ?? [])
    .filter((one) => !isMet(one));
  const headline = measured.find(({ section }) => section.bench === 'branches');
  return [
    '# Performance',
    'How fast Assay is, compared with other programs where that makes sense. [The report](../benchmarks/report.md) has ' +
      'all figures and how each was measured; `npm run bench -- <name>` repeats a measurement, and `npm run bench -- page` ' +
      'writes both pages from the stored figures.',
    ...(headline
      ? [
          `## ${headline.section.title}`,
          headline.section.answer(headline.figures),
          `![${headline.section.title}](performance-branches.svg)`,
          'Milliseconds, the median of the rounds, then the least and the most, for a context of 1,024 tokens with tasks of ' +
            '24 tokens that are each answered with 6. The models have the shape of Qwen2.5-0.5B and random weights.',
          headline.section.tables(headline.figures)[0]?.trimEnd() ?? '',
          machineText(headline.machine),
        ]
      : []),
    '## More results',
    measured.map(({ section: { title } }) => `[${title}](../benchmarks/report.md#${anchor(title)})`).join(' · '),
    missed.length > 0
      ? `Goals that were [missed](../benchmarks/report.md#missed-goals): ${missed.length}.`
      : 'No goal was missed.',
  ];
}

/** Returns the answers of all sections, each with a link to its section. */
function summary(measured: readonly Measured[]): string[] {
  const answers = measured.flatMap(({ section: { title, answer }, figures }) => {
    const text = answer(figures);
    return text === '' ? [] : [`- **[${title}](#${anchor(title)}).** ${text}`];
  });
  return answers.length > 0 ? ['## What to expect', answers.join('\n')] : [];
}

/** Returns the anchor that Markdown renderers give a heading. */
function anchor(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replace(/\s/g, '-');
}

/** Returns the list of missed goals for the top of the page; empty if no goal was missed. */
function missedText(measured: readonly Measured[]): string {
  const missed = measured.flatMap(({ section, figures }) =>
    (section.goals?.(figures) ?? [])
      .filter((goal) => !isMet(goal))
      .map((goal) => `- ${section.title}. ${goalText(goal)}`),
  );
  return missed.length > 0 ? ['## Missed goals', '', ...missed].join('\n') : '';
}

function sectionText({ section, figures, machine }: Measured): string[] {
  const plot = section.plot?.(figures);
  const file = plot ? `performance-${section.bench}.svg` : section.image;
  if (plot) writeFileSync(new URL(`docs/performance-${section.bench}.svg`, ROOT), plot);
  return [
    `## ${section.title}`,
    section.answer(figures),
    file ? `![${section.title}](../docs/${file})` : '',
    goalsText(section.goals?.(figures) ?? []),
    '<details><summary>How it was measured, and all figures</summary>',
    `Run \`npm run bench -- ${section.bench}\` to repeat the measurement.`,
    ...section.method(figures),
    machineText(machine),
    ...section.tables(figures).map((table) => table.trimEnd()),
    '</details>',
  ];
}

function machineText(machine: readonly Figure[]): string {
  const said = machine.map(({ case: what, metric, value, unit }) =>
    metric === 'used' ? what : `${what}: ${Math.round(value * 10) / 10} ${unit || metric}`,
  );
  return said.length > 0 ? `Measured on: ${said.join('; ')}.` : '';
}

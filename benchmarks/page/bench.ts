import { writeFileSync } from 'node:fs';
import type { Figure } from '../report.ts';
import { keptFigures } from '../results.ts';
import { goalsText, goalText, isMet } from './goals.ts';
import type { Section } from './section.ts';
import { SECTIONS } from './sections/index.ts';

const DOCS = new URL('../../docs/', import.meta.url);

interface Measured {
  section: Section;
  figures: readonly Figure[];
  machine: readonly Figure[];
}

/**
 * Writes docs/performance.md and its plots from the stored figures. Every statement about figures is derived from them.
 */
export async function run(): Promise<void> {
  const measured = SECTIONS.map((section): Measured => {
    const all = keptFigures(section.bench);
    const isMachine = ({ system }: Figure) => system === 'machine';
    return { section, figures: all.filter((one) => !isMachine(one)), machine: all.filter(isMachine) };
  }).filter(({ figures, machine }) => figures.length + machine.length > 0);
  const page = [
    '# Performance',
    'How fast Assay is, compared with other programs where that makes sense. The first section has the results in short; ' +
      'the sections below have all figures, including the disappointing ones.',
    'Compare only figures of the same table. Programs that are compared ran in one run, in turn, each in its own process; ' +
      'other sections ran at other times or on other machines. Each section says when and on which machine it ran, and how ' +
      'busy that machine was with other work. `npm run bench -- <name>` repeats a section, and `npm run bench -- page` ' +
      'writes this page from the stored figures.',
    ...summary(measured),
    missedText(measured),
    ...measured.flatMap(sectionText),
  ];
  const text = page
    .filter(Boolean)
    .join('\n\n')
    .replace(/\n{3,}/g, '\n\n');
  writeFileSync(new URL('performance.md', DOCS), `${text.trimEnd()}\n`);
  console.error(`docs/performance.md: ${measured.map(({ section }) => section.bench).join(', ')}`);
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
  if (plot) writeFileSync(new URL(`performance-${section.bench}.svg`, DOCS), plot);
  return [
    `## ${section.title}`,
    section.answer(figures),
    file ? `![${section.title}](${file})` : '',
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

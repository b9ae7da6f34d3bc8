import { writeFileSync } from 'node:fs';
import type { Figure } from '../report.ts';
import { keptFigures } from '../results.ts';
import { goalsText, goalText, isMet } from './goals.ts';
import type { Section } from './section.ts';
import { SECTIONS } from './sections/index.ts';

const DOCS = new URL('../../docs/', import.meta.url);

/**
 * Writes docs/performance.md and its plots from the stored figures. Every statement about figures is derived from them.
 */
export async function run(): Promise<void> {
  const measured = SECTIONS.map((section) => ({ section, figures: keptFigures(section.bench) })).filter(
    ({ figures }) => figures.length > 0,
  );
  const page = [
    '# Performance',
    '`npm run bench` writes this page from its measurements, including the figures that disappoint. Systems that are compared ran in one run, in turn, each in a process of ' +
      'its own, so compare figures within a table, not across machines or runs. Each section says when, on which machine and with which versions it ran, and how busy the ' +
      'machine was with other work before. To repeat a section, run `npm run bench -- <name>`.',
    missedText(measured),
    ...measured.flatMap(({ section, figures }) => sectionText(section, figures)),
  ];
  const text = page
    .filter(Boolean)
    .join('\n\n')
    .replace(/\n{3,}/g, '\n\n');
  writeFileSync(new URL('performance.md', DOCS), `${text.trimEnd()}\n`);
  console.error(`docs/performance.md: ${measured.map(({ section }) => section.bench).join(', ')}`);
}

/** Returns the list of missed goals for the top of the page; empty if no goal was missed. */
function missedText(measured: readonly { section: Section; figures: readonly Figure[] }[]): string {
  const missed = measured.flatMap(({ section, figures }) =>
    (section.goals?.(figures) ?? [])
      .filter((goal) => !isMet(goal))
      .map((goal) => `- ${section.title}. ${goalText(goal)}`),
  );
  return missed.length > 0 ? ['Missed goals:', '', ...missed].join('\n') : '';
}

function sectionText(section: Section, all: readonly Figure[]): string[] {
  const machine = all.filter(({ system }) => system === 'machine');
  const figures = all.filter(({ system }) => system !== 'machine');
  const plot = section.plot?.(figures);
  const file = plot ? `performance-${section.bench}.svg` : section.image;
  if (plot) writeFileSync(new URL(`performance-${section.bench}.svg`, DOCS), plot);
  return [
    `## ${section.title}`,
    `\`npm run bench -- ${section.bench}\`. ${section.about}`,
    machineText(machine),
    file ? `![${section.title}](${file})` : '',
    ...section.tables(figures).map((table) => table.trimEnd()),
    goalsText(section.goals?.(figures) ?? []),
  ];
}

function machineText(machine: readonly Figure[]): string {
  const said = machine.map(({ case: what, metric, value, unit }) =>
    metric === 'used' ? what : `${what}: ${Math.round(value * 10) / 10} ${unit || metric}`,
  );
  return said.length > 0 ? `On: ${said.join('; ')}.` : '';
}

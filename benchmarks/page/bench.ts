import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Figure } from '../report.ts';
import { keptFigures } from '../results.ts';
import { SECTIONS, type Section } from './sections.ts';

const DOCS = new URL('../../docs/', import.meta.url);

/** Writes docs/performance.md and its plots from the kept figures, with the notes of `notes/<name>.md` behind each section's tables. */
export async function run(): Promise<void> {
  const measured = SECTIONS.map((section) => ({ section, figures: keptFigures(section.bench) })).filter(
    ({ figures }) => figures.length > 0,
  );
  const page = [
    '# Performance',
    'Written by `npm run bench`; figures as they were measured, also those that disappoint. Systems under comparison ran in one run, in turns, each in ' +
      'a process of its own: compare within a table, not across machines. Repeat any part with `npm run bench -- <name>`; `--help` tells its arguments.',
    ...measured.flatMap(({ section, figures }) => sectionText(section, figures)),
  ];
  writeFileSync(
    new URL('performance.md', DOCS),
    `${page
      .filter(Boolean)
      .join('\n\n')
      .replace(/\n{3,}/g, '\n\n')
      .trimEnd()}\n`,
  );
  console.log(`docs/performance.md: ${measured.map(({ section }) => section.bench).join(', ')}`);
}

function sectionText(section: Section, all: readonly Figure[]): string[] {
  const machine = all.filter(({ system }) => system === 'machine');
  const figures = all.filter(({ system }) => system !== 'machine');
  const plot = section.plot?.(figures);
  const file = `performance-${section.bench}.svg`;
  if (plot) writeFileSync(new URL(file, DOCS), plot);
  const note = new URL(`notes/${section.bench}.md`, import.meta.url);
  return [
    `## ${section.title}`,
    `\`npm run bench -- ${section.bench}\`. ${section.about}`,
    machineText(machine),
    plot ? `![${section.title}](${file})` : '',
    ...section.tables(figures).map((table) => table.trimEnd()),
    existsSync(note) ? readFileSync(note, 'utf8').trim() : '',
  ];
}

function machineText(machine: readonly Figure[]): string {
  const said = machine.map(({ case: what, metric, value, unit }) =>
    metric === 'used' ? what : `${what}: ${Math.round(value * 10) / 10} ${unit || metric}`,
  );
  return said.length > 0 ? `On: ${said.join('; ')}.` : '';
}

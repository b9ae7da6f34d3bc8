import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Figure } from './report.ts';

const FOLDER = new URL('results/', import.meta.url);

/** Returns the stored figures of a benchmark (`npm run bench -- <bench> --save`); an empty list if there are none. */
export function keptFigures(bench: string): Figure[] {
  const file = new URL(`${bench}.jsonl`, FOLDER);
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Figure);
}

/**
 * Adds figures to the stored ones. If a case was stored before, all its old figures are removed, even those of systems
 * that this run did not measure, because only figures of one run may be compared. Figures about the machine are
 * replaced, too.
 */
export function keepFigures(bench: string, figures: readonly Figure[]): void {
  mkdirSync(FOLDER, { recursive: true });
  const lines = merged(keptFigures(bench), figures).map((figure) => `${JSON.stringify(figure)}\n`);
  writeFileSync(new URL(`${bench}.jsonl`, FOLDER), lines.join(''));
}

export function merged(kept: readonly Figure[], measured: readonly Figure[]): Figure[] {
  const part = ({ system, case: what }: Figure) => (system === 'machine' ? 'the machine' : `case ${what}`);
  const again = new Set(measured.map(part));
  return [...kept.filter((figure) => !again.has(part(figure))), ...measured];
}

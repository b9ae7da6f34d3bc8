import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Figure } from './report.ts';

const FOLDER = new URL('results/', import.meta.url);

/** Returns the stored figures of a benchmark, as `--save` wrote them; an empty list if it never ran. */
export function keptFigures(bench: string): Figure[] {
  const file = new URL(`${bench}.jsonl`, FOLDER);
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Figure);
}

/**
 * Stores figures in addition to those of cases that ran before. A case that is measured again loses all its old
 * figures, also those of systems that were not measured again, because figures that are compared must come from one
 * run. The same is true of the figures about the machine.
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

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Figure } from './report.ts';

const FOLDER = new URL('results/', import.meta.url);

/** The kept figures of a benchmark, as `--save` left them; none where it was never run. */
export function keptFigures(bench: string): Figure[] {
  const file = new URL(`${bench}.jsonl`, FOLDER);
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Figure);
}

/**
 * Keeps figures beside those of cases that were run before. A case that is measured again loses all its old figures, also those of systems
 * that were left out this time: what stands side by side comes from one run. So does what the machine was.
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

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

/** Keeps figures beside those of parts that were run before; a figure that was measured again takes the place of the old one. */
export function keepFigures(bench: string, figures: readonly Figure[]): void {
  const key = ({ system, case: what, metric }: Figure) => JSON.stringify([system, what, metric]);
  const kept = new Map([...keptFigures(bench), ...figures].map((figure) => [key(figure), figure]));
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(
    new URL(`${bench}.jsonl`, FOLDER),
    Array.from(kept.values(), (figure) => `${JSON.stringify(figure)}\n`).join(''),
  );
}

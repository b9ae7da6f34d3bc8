import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/*
 * SECURITY.md names a test for everything that it says cannot happen. Rows without one must say that they trust the
 * role or do not prevent the attack.
 */

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const source = read('SECURITY.md');
const links = [...source.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map((match) => match[1] ?? '');

/** Cells of every row of the tables that begin with "at worst". */
const rows = source
  .split('\n')
  .filter((line) => /^\| (?!at worst|role|---|\[)/.test(line))
  .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | ?\|$/g, '').trim()))
  .filter((cells) => cells.length === 3);

describe('SECURITY.md', () => {
  test.each([...new Set(links)])('%s exists', (path) => {
    expect(existsSync(join(ROOT, path))).toBe(true);
  });

  test('has rows for every role', () => expect(rows.length).toBeGreaterThan(20));

  test.each(rows)('%s: %s', (_, reason, proof) => {
    if (proof === '') expect(reason).toMatch(/\*\*(trusted for that|not prevented)\*\*/);
    else expect(proof).toMatch(/\.ts\)/);
  });
});

test('no program passes a key in the arguments of another, which every account of the machine can read', () => {
  const programs = globSync(['adapters/**/*.ts', 'runtime/**/*.ts', 'release/*.ts'], { cwd: ROOT });
  const passing = programs.filter((path) => /--var[^\n]*\bBOX_KEY:|--api-key[=', ]+\$?\{/.test(read(path)));
  expect(programs.length).toBeGreaterThan(100);
  expect(passing).toEqual([]);
});

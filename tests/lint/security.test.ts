import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/*
 * SECURITY.md names a test for everything that it says cannot happen. Rows without one must say that they trust the
 * role or do not prevent the attack.
 */

const ROOT = join(import.meta.dirname, '../..');
const source = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8');
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

import { expect, test } from 'vitest';
import type { Figure } from '../../report.ts';
import { forms } from './forms.ts';

const figure = (system: string, what: string, value: number): Figure => ({
  bench: 'forms',
  system,
  case: what,
  metric: 'median',
  value,
  unit: 's',
});

test('a column for each family of kernels, and a word about those that are missing', () => {
  const [table, missing] = forms.tables([
    figure('int8', 'AVX-512 VNNI (AMD EPYC): W, 16 tasks', 4),
    figure('int4', 'AVX-512 VNNI (AMD EPYC): W, 16 tasks', 6),
    figure('int8', 'AVX2 (AMD EPYC, AVX-512 hidden): W, 16 tasks', 8),
  ]);
  expect(table).toContain('| | AVX-512 VNNI (AMD EPYC) | AVX2 (AMD EPYC, AVX-512 hidden) |');
  expect(table).toContain('| W, 16 tasks: int8 | 4 | 8 |');
  expect(table).toContain('| W, 16 tasks: int4 | 6 |  |');
  expect(missing).toMatch(/^Not measured yet: AMX, AVX-VNNI, AVX-512, NEON i8mm, NEON dot product, NEON\./);
});

import { expect, test } from 'vitest';
import { FairShares } from './fair-shares.ts';

test('a caller that comes is ahead of those that got much, but saves up nothing while it is away', () => {
  const shares = new FairShares();
  shares.add('busy');
  shares.charge('busy', 50_000);
  shares.add('new');
  expect(shares.used('new')).toBe(49_000);
  shares.charge('new', 1_500);
  expect(shares.used('new')).toBeGreaterThan(shares.used('busy'));
});

test('a caller that leaves and comes back at once keeps its count', () => {
  const shares = new FairShares();
  shares.add('steady');
  shares.add('hasty');
  shares.charge('hasty', 5_000);
  shares.remove('hasty', 0);
  expect(shares.callers(1_000)).toBe(2);
  shares.add('hasty');
  expect(shares.used('hasty')).toBe(5_000);
});

test('a caller without jobs is forgotten after two seconds', () => {
  const shares = new FairShares();
  shares.add('a');
  shares.add('a');
  shares.charge('a', 10);
  shares.remove('a', 0);
  expect(shares.callers(10_000)).toBe(1);
  shares.remove('a', 10_000);
  expect([shares.callers(11_000), shares.callers(12_000)]).toEqual([1, 0]);
  expect(shares.used('a')).toBe(0);
});

import { expect, it } from 'vitest';
import { TokenBudget } from './token-budget.ts';

it('gives each branch what the branches before it have not used, up to its own maximum', () => {
  const budget = new TokenBudget(10);
  const [first, second, third] = [budget.addShare(8), budget.addShare(4), budget.addShare(100)];
  expect([first.limit, second.limit, third.limit]).toEqual([8, 4, 10]);
  second.used = 4;
  expect([first.limit, second.limit, third.limit]).toEqual([8, 4, 6]);
  first.used = 8;
  expect([first.limit, second.limit, third.limit]).toEqual([8, 2, 0]);
  second.used = second.limit;
  expect(third.limit).toBe(0);
});

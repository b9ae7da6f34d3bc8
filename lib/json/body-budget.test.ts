import { describe, expect, test } from 'vitest';
import { BodyBudget } from './body-budget.ts';

const KIB = 1024;
const overloaded = expect.objectContaining({ code: 'overloaded', retryAfterSeconds: 1 });

describe('the budget for bodies', () => {
  test('is shared by all bodies, and released', () => {
    const budget = new BodyBudget(100 * KIB);
    const [a, b] = [budget.share(), budget.share()];
    a.take(164 * KIB);
    expect(() => b.take(65 * KIB)).toThrow(overloaded);
    a.release();
    a.release();
    b.take(164 * KIB);
    expect(() => budget.share().take(64 * KIB + 1)).toThrow(overloaded);
  });

  test('is not charged for a small body, in one chunk or in many', () => {
    const budget = new BodyBudget(0);
    budget.share().take(64 * KIB);
    const share = budget.share();
    for (let chunk = 0; chunk < 64; chunk++) share.take(KIB);
    expect(() => share.take(1)).toThrow(overloaded);
  });

  test('is not charged for refused bytes', () => {
    const budget = new BodyBudget(10);
    const share = budget.share();
    expect(() => share.take(64 * KIB + 11)).toThrow(overloaded);
    share.take(64 * KIB + 10);
  });
});

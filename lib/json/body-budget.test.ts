import { describe, expect, test } from 'vitest';
import { BodyBudget } from './body-budget.ts';

const KIB = 1024;
const overloaded = expect.objectContaining({ code: 'overloaded', retryAfterSeconds: 1 });

describe('the room for bodies', () => {
  test('is shared by all, and given back', () => {
    const room = new BodyBudget(100 * KIB);
    const [a, b] = [room.share(), room.share()];
    a.take(164 * KIB);
    expect(() => b.take(65 * KIB)).toThrow(overloaded);
    a.release();
    a.release();
    b.take(164 * KIB);
    expect(() => room.share().take(64 * KIB + 1)).toThrow(overloaded);
  });

  test('is not needed by a small body, in one piece or in many', () => {
    const room = new BodyBudget(0);
    room.share().take(64 * KIB);
    const share = room.share();
    for (let piece = 0; piece < 64; piece++) share.take(KIB);
    expect(() => share.take(1)).toThrow(overloaded);
  });

  test('is not taken by what was refused', () => {
    const room = new BodyBudget(10);
    const share = room.share();
    expect(() => share.take(64 * KIB + 11)).toThrow(overloaded);
    share.take(64 * KIB + 10);
  });
});

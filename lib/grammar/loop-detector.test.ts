import { expect, test } from 'vitest';
import { LoopDetector } from './loop-detector.ts';

const repeat = (tokens: readonly number[], times: number) => Array.from({ length: times }, () => tokens).flat();
const range = (length: number) => Array.from({ length }, (_, i) => i);

/** Returns a sequence of two labels without a pattern. */
function coins(count: number): number[] {
  let state = 1;
  return range(count).map(() => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 20) & 1;
  });
}

/** Returns the number of tokens after which a loop is found; null for none. */
function found(tokens: readonly number[], bounds = { tokens: 64, n: 16, distinct: 16 }): number | null {
  const detector = new LoopDetector(bounds);
  for (const [at, token] of tokens.entries()) {
    detector.push(token);
    if (detector.looping) return at + 1;
  }
  return null;
}

test.each<[string, readonly number[], number | null]>([
  ['one token', repeat([1], 100), 64],
  ['a sentence of seven', repeat([1, 2, 3, 4, 5, 6, 7], 20), 64],
  ['a sentence, after other text', [...range(50), ...repeat([1, 2, 3, 4, 5, 6, 7], 20)], 105],
  ['a sentence that drifts after three times', repeat([...repeat([1, 2, 3, 4], 3), 4, 1, 2], 9), 64],
  ['sixteen tokens, four times', repeat(range(16), 4), 64],
  ['a paragraph longer than the bound', repeat(range(17), 9), null],
  ['63 times one token', repeat([1], 63), null],
  ['a list with a counter', range(40).flatMap((i) => [i, 900, 901, 902]), null],
  ['text that never repeats', range(500), null],
  ['two labels in changing order', coins(500), null],
  ['two labels in changing order, with commas', coins(500).flatMap((one) => [one, 7]), null],
  ['nothing', [], null],
])('%s', (_, tokens, expected) => {
  expect(found(tokens)).toBe(expected);
});

test('starts again after clear()', () => {
  const detector = new LoopDetector({ tokens: 8, n: 4, distinct: 2 });
  for (const token of repeat([1], 8)) detector.push(token);
  expect(detector.looping).toBe(true);
  detector.clear();
  expect(detector.looping).toBe(false);
  for (const token of repeat([1], 7)) detector.push(token);
  expect(detector.looping).toBe(false);
});

test('a fork is independent', () => {
  const detector = new LoopDetector({ tokens: 8, n: 4, distinct: 2 });
  for (const token of repeat([1], 7)) detector.push(token);
  const fork = detector.fork();
  fork.push(1);
  detector.push(2);
  expect([fork.looping, detector.looping]).toEqual([true, true]);
  detector.push(3);
  expect([fork.looping, detector.looping]).toEqual([true, false]);
});

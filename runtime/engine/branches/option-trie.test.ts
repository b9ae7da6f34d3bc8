import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normalise, OptionTrie } from './option-trie.ts';

describe('choices', () => {
  test.each<[string, number[][], number[]]>([
    ['one option is settled', [[1, 2, 3]], [0]],
    [
      'two that differ at once',
      [
        [1, 9],
        [2, 9],
      ],
      [1, 1],
    ],
    [
      'a shared beginning is free',
      [
        [7, 1, 9],
        [7, 2, 9],
      ],
      [1, 1],
    ],
    [
      'the rest of the last one left is free',
      [
        [1, 2, 9],
        [1, 3, 4, 9],
        [5, 9],
      ],
      [2, 2, 1],
    ],
  ])('%s', (_, paths, expected) => {
    const trie = new OptionTrie(paths);
    expect(paths.map((_path, option) => trie.choices(option))).toEqual(expected);
  });

  test.each<[string, number[][], number[], number[], number[]]>([
    [
      'each of its own',
      [
        [1, 8],
        [2, 8],
      ],
      [0, 1],
      [1, 1],
      [0, 1],
    ],
    [
      'two endings each',
      [
        [1, 8],
        [1, 9],
        [2, 8],
        [2, 9],
      ],
      [0, 0, 1, 1],
      [1, 1, 1, 1],
      [0, 0, 2, 2],
    ],
    [
      'an ending beside a longer option',
      [
        [1, 8],
        [1, 9],
        [1, 2, 8],
      ],
      [0, 0, 1],
      [1, 1, 1],
      [0, 0, 2],
    ],
    [
      'one option alone',
      [
        [1, 8],
        [1, 9],
      ],
      [0, 0],
      [0, 0],
      [0, 0],
    ],
  ])('what settles options with %s', (_, paths, options, settling, plainest) => {
    const trie = new OptionTrie(paths, options);
    expect(paths.map((_path, i) => trie.settling(i))).toEqual(settling);
    expect(paths.map((_path, i) => trie.firstPathOf(i))).toEqual(plainest);
  });

  test.each([
    ['the likeliest path', [0, 1, 2], [0.2, 0.5, 0.3], 1],
    ['the first on a tie', [0, 1, 2], [0.2, 0.4, 0.4], 1],
    ['the option whose endings have most together, by its likeliest', [0, 0, 1, 1], [0.3, 0.31, 0.36, 0.03], 1],
    ['one path where only one is possible', [0, 1], [1, 0], 0],
  ])('best is %s', (_, options, probabilities, best) => {
    const trie = new OptionTrie(
      options.map((_option, path) => [1, path + 2]),
      options,
    );
    expect(trie.best(probabilities.map(Math.log))).toBe(best);
  });

  test.each([
    [[[1], [1, 2]]],
    [[[1, 2], [1]]],
    [
      [
        [1, 2],
        [1, 2],
      ],
    ],
    [[[], [1]]],
  ])('%j is refused', (paths) => {
    expect(() => new OptionTrie(paths)).toThrow('prefix');
  });
});

test('parts hold every node that has children, each behind its parent, and are bounded', () => {
  const paths = fc.uniqueArray(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 300 }), {
    minLength: 2,
    maxLength: 60,
    selector: (path) => path.join(),
  });
  fc.assert(
    fc.property(paths, (open) => {
      const closed = open.map((path) => [...path, 0]);
      const trie = new OptionTrie(closed);
      const seen = new Set([0]);
      for (const part of trie.parts()) {
        const inPart = new Set([0]);
        for (const node of part) {
          expect(inPart.has(trie.parent(node))).toBe(true);
          inPart.add(node);
          seen.add(node);
        }
        expect(part.length).toBeLessThanOrEqual(255 + 300);
      }
      for (const option of closed.keys()) expect(seen.has(trie.nodeBeforeEnd(option))).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test('scores add up along the paths, whatever the parts', () => {
  // All nodes get the same logits: token t has the logit t.
  const logits = Float32Array.of(0, 1, 2);
  const trie = new OptionTrie([
    [1, 0],
    [2, 1, 0],
    [2, 2],
  ]);
  trie.score(0, logits);
  for (const node of trie.parts().flat()) trie.score(node, logits);
  const logprob = (token: number) => token - Math.log(1 + Math.E + Math.E ** 2);
  const expected = [logprob(1) + logprob(0), logprob(2) + logprob(1) + logprob(0), logprob(2) + logprob(2)];
  for (const [option, value] of trie.logprobs().entries()) expect(value).toBeCloseTo(expected[option]!, 5);
});

test('probabilities among the options add up to 1, also for tiny ones', () => {
  const probabilities = normalise([-1000, -1001, -2000]);
  expect(probabilities.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 12);
  expect(probabilities[0]! / probabilities[1]!).toBeCloseTo(Math.E, 9);
});

test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
  'logits that are all %d score no option',
  (logit) => {
    const trie = new OptionTrie([[1], [2]]);
    expect(() => trie.score(0, new Float32Array(4).fill(logit))).toThrow('not numbers');
  },
);

import { describe, expect, test } from 'vitest';
import type { Sampling } from '../job-spec.ts';
import { Random } from '../random.ts';
import { argmax, chooseToken, logSumExp } from './sampler.ts';

const GREEDY: Sampling = {
  temperature: 0,
  topP: 1,
  seed: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  topLogprobs: null,
};

function maskOf(...tokens: number[]): Uint32Array {
  const mask = new Uint32Array(2);
  for (const token of tokens) mask[token >> 5]! |= 1 << (token & 31);
  return mask;
}

/** Counts how often each token is drawn. */
function frequencies(logits: number[], sampling: Partial<Sampling>, mask: Uint32Array | null = null, draws = 20_000) {
  const random = new Random(5);
  const counts = logits.map(() => 0);
  for (let i = 0; i < draws; i++) {
    const row = Float32Array.from(logits);
    counts[chooseToken(row, { ...GREEDY, ...sampling }, mask, new Map(), random).token]!++;
  }
  return counts.map((count) => count / draws);
}

describe('argmax', () => {
  test.each<[string, number[], Uint32Array | null, number]>([
    ['the highest', [1, 3, 2], null, 1],
    ['the lowest id on a tie', [3, 1, 3], null, 0],
    ['only what is allowed', [9, 1, 2], maskOf(1, 2), 2],
    ['a single allowed token, whatever its logit', [9, Number.NEGATIVE_INFINITY, 2], maskOf(1), 1],
    ['beyond the first word', [...Array(40).keys()], maskOf(3, 33), 33],
    ['not beyond the vocabulary', [1, 2, 3], maskOf(1, 60), 1],
  ])('%s', (_, logits, mask, token) => expect(argmax(Float32Array.from(logits), mask)).toBe(token));

  test('throws if no token is allowed', () => {
    expect(() => argmax(Float32Array.of(1, 2), maskOf())).toThrow('no token is allowed');
  });

  test.each([null, maskOf(1, 2)])('logits that are not numbers are an error, with the mask %j', (mask) => {
    const logits = new Float32Array(3).fill(Number.NaN);
    expect(() => argmax(logits, mask)).toThrow('not numbers');
    for (const temperature of [0, 1])
      expect(() => chooseToken(logits, { ...GREEDY, temperature }, mask, new Map(), new Random(5))).toThrow(
        'not numbers',
      );
  });
});

describe('sampling', () => {
  // probabilities 0.5, 0.3, 0.2
  const logits = [0.5, 0.3, 0.2].map(Math.log);

  test.each<[string, Partial<Sampling>, number[]]>([
    ['temperature 1 draws as the model says', { temperature: 1 }, [0.5, 0.3, 0.2]],
    ['temperature 0.5 squares the odds', { temperature: 0.5 }, [25 / 38, 9 / 38, 4 / 38]],
    ['top-p keeps the fewest that reach it', { temperature: 1, topP: 0.7 }, [0.625, 0.375, 0]],
    ['a small top-p keeps the best alone', { temperature: 1, topP: 0.01 }, [1, 0, 0]],
  ])('%s', (_, sampling, expected) => {
    for (const [token, frequency] of frequencies(logits, sampling).entries()) {
      expect(frequency).toBeCloseTo(expected[token]!, 1.5);
    }
  });

  test('a mask removes tokens before one is drawn', () => {
    const [a, b, c] = frequencies(logits, { temperature: 1 }, maskOf(0, 2));
    expect([a, b, c].map((share) => Math.round(share! * 20) / 20)).toEqual([0.7, 0, 0.3]);
  });

  test('the same seed draws the same tokens, another seed others', () => {
    const draws = (seed: number) => {
      const random = new Random(seed);
      const row = () => Float32Array.from({ length: 50 }, (_, i) => i / 25);
      return Array.from(
        { length: 20 },
        () => chooseToken(row(), { ...GREEDY, temperature: 1 }, null, new Map(), random).token,
      );
    };
    expect(draws(1)).toEqual(draws(1));
    expect(draws(1)).not.toEqual(draws(2));
    expect(draws(1)).not.toEqual(draws(1 + 2 ** 32));
  });
});

test('penalties count the tokens of the answer', () => {
  const choose = (sampling: Partial<Sampling>, counts: [number, number][]) =>
    chooseToken(Float32Array.of(2, 1.5, 1), { ...GREEDY, ...sampling }, null, new Map(counts), new Random(0)).token;
  expect(choose({ presencePenalty: 0.6 }, [[0, 1]])).toBe(1);
  expect(choose({ frequencyPenalty: 0.2 }, [[0, 1]])).toBe(0);
  expect(choose({ frequencyPenalty: 0.2 }, [[0, 3]])).toBe(1);
  expect(choose({ presencePenalty: -2 }, [[2, 1]])).toBe(2);
});

test('log-probabilities are the model’s own, whatever mask, temperature and penalties do', () => {
  const probabilities = [0.5, 0.3, 0.2];
  const row = Float32Array.from(probabilities, Math.log);
  const sampling = { ...GREEDY, presencePenalty: 1, topLogprobs: 2 };
  const chosen = chooseToken(row, sampling, maskOf(1, 2), new Map([[1, 1]]), new Random(0));
  expect(chosen.token).toBe(2);
  expect(Math.exp(chosen.logprob!)).toBeCloseTo(0.2, 5);
  expect(chosen.top!.map(({ token, logprob }) => [token, Math.round(Math.exp(logprob) * 100)])).toEqual([
    [0, 50],
    [1, 30],
  ]);
});

test('logSumExp does not overflow', () => {
  expect(logSumExp(Float32Array.of(1000, 1000))).toBeCloseTo(1000 + Math.log(2), 4);
  expect(logSumExp(Float32Array.of(-1000, -1001))).toBeCloseTo(-1000 + Math.log(1 + Math.exp(-1)), 4);
});

import { describe, expect, test } from 'vitest';
import { distributionOf } from './distribution.ts';

const logs = (...probabilities: number[]) => ({ optionLogprobs: probabilities.map(Math.log) });

describe('distributionOf', () => {
  test.each<[string, number[], { best: number; expected: number; entropy: number; margin: number; score: number }]>([
    // Ollama's documentation of /v1/systemone gives this example with the confidence 0.8906; its probabilities are
    // rounded.
    [
      "Ollama's example",
      [0.0125, 0.9781, 0.0093],
      { best: 1, expected: 0.9967, entropy: 0.8908, margin: 0.9671, score: 0.9673 },
    ],
    ['even', [0.25, 0.25, 0.25, 0.25], { best: 0, expected: 1.5, entropy: 0, margin: 0, score: 0 }],
    ['certain', [0, 1], { best: 1, expected: 1, entropy: 1, margin: 1, score: 1 }],
    ['far apart', [0.5, 0, 0, 0.4, 0.1], { best: 0, expected: 1.6, entropy: 0.4137, margin: 0.375, score: 0 }],
    ['two neighbours', [0, 0.1, 0.6, 0.3, 0], { best: 2, expected: 2.2, entropy: 0.4421, margin: 0.5, score: 0.6667 }],
    ['one option', [1], { best: 0, expected: 0, entropy: 1, margin: 1, score: 1 }],
    ['two of three', [0.5, 0.5, 0], { best: 0, expected: 0.5, entropy: 0.3691, margin: 0.25, score: 0.25 }],
  ])('%s', (_, probabilities, { best, expected, entropy, margin, score }) => {
    const found = distributionOf(logs(...probabilities), 'choice', 'entropy');
    expect(found.best).toBe(best);
    expect(found.expected).toBeCloseTo(expected, 3);
    expect(found.confidence).toBeCloseTo(entropy, 3);
    expect(distributionOf(logs(...probabilities), 'choice', 'margin').confidence).toBeCloseTo(margin, 3);
    expect(distributionOf(logs(...probabilities), 'score', 'margin').confidence).toBeCloseTo(score, 3);
  });
});

// Expected values by the authors' code: decider-ai 1.10.0 and strands-decider 0.2.0 (the last two), kev's api.py.
test.each<[string, number[], Parameters<typeof distributionOf>[2], number]>([
  ['lead', [0.1, 0.7, 0.2], 'lead', 0.55],
  ['highest', [0.1, 0.7, 0.2], 'highest', 0.7],
  ['distance', [0.1, 0.7, 0.2], 'distance', 0.55],
  ['spread', [0.1, 0.7, 0.2], 'spread', 0.85],
  ['deviation', [0.1, 0.7, 0.2], { deviation: 0 }, 0.4614],
  ['deviation above the least', [0.1, 0.7, 0.2], { deviation: Math.sqrt(0.1) }, 0.6749],
])('the confidence %s of a score', (_, probabilities, formula, confidence) => {
  expect(distributionOf(logs(...probabilities), 'score', formula).confidence).toBeCloseTo(confidence, 3);
});

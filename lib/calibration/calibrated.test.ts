import { expect, test } from 'vitest';
import type { DecideTask, TaskAnswer } from '../backend.ts';
import { automated, calibrated } from './calibrated.ts';
import type { Calibration } from './calibration.ts';

const fitted = (temperature: number) => ({
  temperature,
  labels: 100,
  before: { ece: 0.1, brier: 0.2 },
  after: { ece: 0.05, brier: 0.2 },
});
const calibration: Calibration = {
  version: 1,
  fingerprint: 'ab'.repeat(32),
  model: 'a/b',
  fitted: '2026-11-24',
  kinds: { predicate: fitted(4), choice: fitted(2) },
};
const answer: TaskAnswer = { name: 'a', json: '{"value":"yes"}', optionLogprobs: [Math.log(0.9), Math.log(0.1)] };
const decide = (kind?: DecideTask['kind']): DecideTask => ({
  type: 'decide',
  name: 'a',
  question: '?',
  options: ['yes', 'no'],
  ...(kind ? { kind } : {}),
});

test.each([
  ['predicate', 4],
  ['choice', 2],
  // Without labels of its own, a score is calibrated as a choice.
  ['score', 2],
  [undefined, 2],
] as const)('a %s has the temperature %d', (kind, temperature) => {
  const { optionLogprobs, json } = calibrated(answer, decide(kind), calibration);
  const odds = optionLogprobs![0]! - optionLogprobs![1]!;
  expect(odds).toBeCloseTo(Math.log(9) / temperature, 9);
  expect(json).toBe(answer.json);
});

test('values without a temperature stay as they are, with one they are calibrated', () => {
  const extract = { type: 'extract', name: 'a', instruction: '', shape: { kind: 'open' } } as const;
  const fields = [{ path: '/a', probability: 0.8 }];
  const written: TaskAnswer = { name: 'a', json: '{"a":1}', fields };
  expect(calibrated(written, extract, calibration).fields![0]!.probability).toBeCloseTo(0.8, 9);
  const withFields = { ...calibration, kinds: { field: fitted(2) } };
  expect(calibrated(written, extract, withFields).fields![0]!.probability).toBeCloseTo(2 / 3, 9);
});

test.each([
  [{}, {}, true],
  [{ orders: 2 }, {}, null],
  [{ calibrated: false }, {}, null],
  [{ maxError: 0.01 }, {}, null],
  [{}, { first: true }, null],
  [{}, { unsure: true as const }, null],
  [{}, { kind: 'score' as const }, null],
  [{}, { id: 'own' }, false],
])('with %j, a question with %j may be automated: %s', (asked, task, expected) => {
  const group = { labels: 100, accepted: 90, errors: 1, error_upper: 0.04, coverage: 0.9 };
  const thresholds = {
    method: 'ltt-fixed-sequence' as const,
    confidence: 0.95,
    fingerprint: 'ab'.repeat(32),
    orders: 1,
    targets: [
      {
        target_error: 0.05,
        groups: { predicate: { ...group, threshold: 0.9 - 1e-12 }, 'question:own': { ...group, threshold: 0.95 } },
      },
    ],
  };
  const probabilities = { calibrated: true, maxError: 0.05, ...asked };
  const found = automated(answer, { ...decide('predicate'), ...task }, { probabilities }, thresholds);
  expect(found).toEqual({ ...answer, automated: expected });
  expect(automated(answer, decide(), { probabilities }, undefined).automated).toBeNull();
  expect(automated(answer, decide(), { probabilities: { calibrated: true } }, thresholds)).toBe(answer);
});

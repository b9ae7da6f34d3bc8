import { expect, test } from 'vitest';
import { type Label, readLabels, requestOfLabels, samplesOf } from './labels.ts';

const samplesFor = (labels: readonly Label[], answers: unknown) =>
  samplesOf(labels, JSON.stringify({ model: 'a/b', answers, usage: USAGE })).map(
    ({ kind, name, logprobs, label, groups }) => ({
      kind,
      name,
      probabilities: logprobs.map((one) => Number(Math.exp(one).toFixed(6))),
      label,
      groups,
    }),
  );
const USAGE = {
  input_tokens: 1,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 1,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 2,
};

test('a line of System One has several labels, which may be objects', () => {
  const labels = readLabels(
    JSON.stringify({
      state: { a: 1 },
      questions: {
        u: { type: 'noul', instructions: '?' },
        t: { type: 'choice', criteria: { x: null, y: 'Y' } },
        s: { type: 'score', criteria: ['low', 'high'] },
      },
      gold: { u: { label: 'false', probabilities: {} }, t: 'y', s: 1 },
    }),
  );
  expect(requestOfLabels(labels)).toMatchObject({ state: { a: 1 }, questions: { u: {}, t: {}, s: {} } });
  const answers = {
    u: { type: 'noul', noul: 0.25 },
    t: { type: 'choice', choice: 'y', probabilities: { x: 0.25, y: 0.75 }, confidence: 0.5 },
    s: { type: 'score', score: 0.5, probabilities: { 0: 0.5, 1: 0.5 } },
  };
  expect(samplesFor(labels, answers)).toEqual([
    { kind: 'predicate', name: 'u', probabilities: [0.25, 0.75], label: 1, groups: ['question:u', 'predicate'] },
    { kind: 'choice', name: 't', probabilities: [0.25, 0.75], label: 1, groups: ['question:t', 'choice'] },
    { kind: 'score', name: 's', probabilities: [0.5, 0.5], label: 1, groups: ['question:s', 'score'] },
  ]);
});

test('with unsure, null is a label, and the probabilities are those of all options', () => {
  const labels = readLabels(
    JSON.stringify({ input: 'x', type: 'predicate', instructions: 'Q?', unsure: true, label: null }),
  );
  const refused = { type: 'refusal', name: null, x_probabilities: [0.5, 0.5], x_p_unsure: 0.6 };
  expect(samplesFor(labels, [refused])).toEqual([
    { kind: 'choice', name: 'Q?', probabilities: [0.2, 0.2, 0.6], label: 2, groups: ['unsure'] },
  ]);
});

test('each label of a multi question is a predicate', () => {
  const choices = [{ value: 'a' }, { value: 'b' }];
  const labels = readLabels(
    JSON.stringify({ input: 'x', type: 'multi', name: 'm', instructions: 'Q?', choices, label: ['b'] }),
  );
  const probabilities = [
    { value: 'a', probability: 0.25 },
    { value: 'b', probability: 0.75 },
  ];
  const answer = { type: 'multi', name: 'm', selected: ['b'], probabilities, threshold: 0.5, set_confidence: 0.5 };
  expect(samplesFor(labels, [answer])).toEqual([
    { kind: 'predicate', name: 'm: a', probabilities: [0.25, 0.75], label: 1, groups: [] },
    { kind: 'predicate', name: 'm: b', probabilities: [0.75, 0.25], label: 0, groups: [] },
  ]);
});

test('a field has a null decision, and a value if it is there', () => {
  const line = { input: 'x', type: 'date', name: 'due', label: '2026-03-03' };
  const [label] = readLabels(JSON.stringify(line));
  expect(requestOfLabels([label!])).toEqual({ state: 'x', fields: { due: { type: 'date' } } });
  const answers = { due: { type: 'date', value: null, guess: '2026-03-03', p_null: 0.75, confidence: 0.5 } };
  expect(samplesFor([label!], answers)).toEqual([
    { kind: 'absent', name: 'due: absent', probabilities: [0.75, 0.25], label: 1, groups: [] },
    { kind: 'field', name: 'due', probabilities: [0.5, 0.5], label: 0, groups: [] },
  ]);
  const [absent] = readLabels(JSON.stringify({ ...line, label: null }));
  expect(samplesFor([absent!], answers)).toMatchObject([{ kind: 'absent', label: 0 }]);
});

test.each([
  [{ state: 'x', questions: { a: { type: 'noul', instructions: '?' } }, gold: {} }, 'gold.a must be true or false.'],
  [{ state: 'x', questions: { a: { type: 'extract' } }, gold: {} }, 'questions.a: label questions of the type extract'],
  [
    { input: 'x', type: 'multi', instructions: '?', choices: [{ value: 'a' }], label: ['b'] },
    'must be a list of its choices',
  ],
])('%j is refused', (line, message) => {
  expect(() => readLabels(JSON.stringify(line))).toThrow(message);
});

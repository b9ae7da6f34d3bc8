import { expect, test } from 'vitest';
import type { BatchAnswer, TaskBatch } from '../lib/backend.ts';
import { parseModelId } from '../lib/model-id.ts';
import { checkEvidence, wishesByTask, withEvidence } from './evidence.ts';

const model = parseModelId('a/b');
const usage = { promptTokens: 10, completionTokens: 1 };
const context = 'The sun shone. The lamp is broken! He left.';
const batch: TaskBatch = {
  input: { context },
  media: [],
  tasks: [{ type: 'decide', name: 'q0', question: 'Is the lamp broken?', options: ['yes', 'no'] }],
  temperature: 0,
  maxOutputTokens: 16,
  probabilities: { calibrated: true },
};
const answered = (p: number): BatchAnswer => ({
  model,
  answers: [{ name: 'q0', json: '{"value":"yes"}', optionLogprobs: [Math.log(p), Math.log(1 - p)] }],
  finishReason: 'stop',
  usage,
});

test('ablation weighs the sentences by what the answer loses without them', async () => {
  const found = await withEvidence(batch, answered(0.8), [{ method: 'ablation', top: 2 }], async ({ input }) => {
    const text = 'context' in input ? input.context : '';
    return answered(text.includes('broken') ? (text.includes('left') ? 0.8 : 0.4) : 0.2);
  });
  expect(found.answers).toMatchObject([
    {
      quotes: [
        { text: 'The lamp is broken!', start: 15, end: 34, weight: expect.closeTo(Math.log(4), 9) },
        { text: 'He left.', start: 35, end: 43, weight: expect.closeTo(Math.log(2), 9) },
      ],
    },
  ]);
  expect(context.slice(15, 34)).toBe('The lamp is broken!');
  // The first answer, and three sentences left out.
  expect(found.usage.promptTokens).toBe(40);
});

test('sentences without which another model answers are not compared', async () => {
  const escalated = { ...answered(0.8), answers: answered(0.8).answers.map((one) => ({ ...one, answeredBy: 'c/d' })) };
  const found = await withEvidence(batch, escalated, [{ method: 'ablation' }], async ({ input }) =>
    'context' in input && input.context.includes('broken') ? answered(0.1) : { ...escalated, ...answeredBy(0.2) },
  );
  expect(found.answers).toMatchObject([{ quotes: [{ text: 'The lamp is broken!' }] }]);
});
const answeredBy = (p: number) => ({ answers: answered(p).answers.map((one) => ({ ...one, answeredBy: 'c/d' })) });

const sentences = (count: number) => Array.from({ length: count }, (_, i) => `Number ${i} is here.`).join(' ');
test.each([
  ['32 sentences', { context: sentences(32) }, null],
  ['33 sentences', { context: sentences(33) }, /more than 32 sentences/],
  ['empty lines', { context: '\n'.repeat(20_000_000) }, /more than 32 sentences or 1024 lines/],
  ['messages', { messages: [] }, /needs the input as one text/],
  ['an object', { context: 'a', state: '{"a": "b"}' }, /needs the input as one text/],
])('ablation of %s', (_, input, message) => {
  const check = () => checkEvidence({ ...batch, input }, [{ method: 'ablation' }]);
  if (message) expect(check).toThrow(message);
  else expect(check).not.toThrow();
  expect(() => checkEvidence({ ...batch, input }, [true, undefined])).not.toThrow();
});

test('a wish is that of the question, not of a label', () => {
  const label = (first: boolean) => ({ type: 'decide', name: 'x', question: '?', first }) as const;
  const tasks = [label(true), label(false), batch.tasks[0]!];
  expect(wishesByTask({ ...batch, tasks }, [undefined, true])).toEqual([undefined, undefined, true]);
  expect(wishesByTask({ ...batch, tasks }, [false, undefined])).toBe(null);
});

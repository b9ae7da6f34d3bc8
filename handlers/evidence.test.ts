import { expect, test } from 'vitest';
import type { BatchAnswer, TaskBatch } from '../lib/backend.ts';
import { parseModelId } from '../lib/model-id.ts';
import { wishesByTask, withEvidence } from './evidence.ts';

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

test('at most 32 sentences are left out, those with words of the question first', async () => {
  const sentences = Array.from({ length: 50 }, (_, i) => `Number ${i} is here.`);
  const long = { ...batch, input: { context: [...sentences, 'The lamp is broken.'].join(' ') } };
  const asked: string[] = [];
  await withEvidence(long, answered(0.8), [{ method: 'ablation' }], async ({ input }) => {
    asked.push('context' in input ? input.context : '');
    return answered(0.8);
  });
  expect(asked).toHaveLength(32);
  expect(asked[0]).not.toContain('lamp');
});

test('ablation refuses an input that is not one text', async () => {
  const chat = { ...batch, input: { messages: [] } };
  await expect(
    withEvidence(chat, answered(0.8), [{ method: 'ablation' }], async () => answered(0.8)),
  ).rejects.toMatchObject({
    code: 'unsupported_parameter',
  });
});

test('a wish is that of the question, not of a label', () => {
  const label = (first: boolean) => ({ type: 'decide', name: 'x', question: '?', first }) as const;
  const tasks = [label(true), label(false), batch.tasks[0]!];
  expect(wishesByTask({ ...batch, tasks }, [undefined, true])).toEqual([undefined, undefined, true]);
});

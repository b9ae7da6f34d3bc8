import { afterAll, expect, test } from 'vitest';
import { compileFixture, continueGreedily, goldenCases } from './fixtures.ts';

const closing: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(closing.map((close) => close())));

test.each([
  'optimum/llama',
  'optimum/qwen2',
  'optimum/qwen3',
  'optimum/phi3',
  'optimum/smollm3',
  'optimum/smollm2',
  'optimum/gemma3',
])('%s answers as PyTorch does over fixed shapes', async (fixture) => {
  const model = await compileFixture(fixture, 'float', 'auto');
  closing.push(model.close);
  expect(model.manifest.path).toBe('static');
  for (const { prompt, greedy } of goldenCases(fixture)) {
    expect(await continueGreedily(model, prompt, greedy.length)).toEqual(greedy);
  }
});

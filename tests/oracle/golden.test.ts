import { afterAll, expect, test } from 'vitest';
import type { Job } from '../../runtime/engine/job.ts';
import { compileFixture, drive, engineFor, goldenCases } from './fixtures.ts';

const OPEN: Job['branches'][number] = {
  suffix: [],
  constraint: null,
  sampling: { temperature: 0, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null },
  maxTokens: 16,
  endTokens: new Set(),
};

const closing: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(closing.map((close) => close())));

test.each([
  ['genai/llama', 'packed'],
  ['genai/qwen2', 'packed'],
  ['genai/qwen2-fp16', 'packed'],
  ['genai/qwen3', 'packed'],
  ['genai/gemma3', 'packed'],
  ['genai/phi3', 'packed'],
  ['genai/smollm2', 'packed'],
  ['optimum/llama', 'plain'],
  ['optimum/qwen2', 'plain'],
  ['optimum/qwen3', 'plain'],
  ['optimum/gemma3', 'plain'],
  ['optimum/phi3', 'plain'],
  ['optimum/smollm2', 'plain'],
  ['optimum/smollm3', 'plain'],
  ['genai/llama', 'static'],
  ['genai/qwen2', 'static'],
  ['genai/qwen2-fp16', 'static'],
  ['genai/qwen3', 'static'],
  ['genai/gemma3', 'static'],
  ['genai/phi3', 'static'],
  ['genai/smollm2', 'static'],
])('%s answers as PyTorch does, on the %s path', async (fixture, path) => {
  const model = await compileFixture(fixture, 'float', path === 'static' ? 'auto' : undefined);
  closing.push(model.close);
  expect(model.manifest.path).toBe(path);
  const engine = engineFor(model);
  for (const { prompt, greedy } of goldenCases(fixture)) {
    const branch = { ...OPEN, suffix: prompt.slice(-1) };
    const answer = engine.submit({
      id: fixture,
      prefix: prompt.slice(0, -1),
      branches: [branch],
      budget: 16,
      deadline: Number.POSITIVE_INFINITY,
    });
    await drive(engine);
    const { branches } = await answer;
    expect(branches[0]!.tokens).toEqual(greedy);
  }
  engine.checkIntegrity();
});

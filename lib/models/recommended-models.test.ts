import { describe, expect, test } from 'vitest';
import { parseModelId } from '../model-id.ts';
import { downloadBytes, memoryBytes, modelFor, RECOMMENDED_MODELS } from './recommended-models.ts';

const GIB = 2 ** 30;

describe('every recommended model', () => {
  test.each(RECOMMENDED_MODELS.map((model) => [model.id, model] as const))('%s', (id, model) => {
    expect(parseModelId(id)).toBe(id);
    expect(new URL(model.source).protocol).toBe('https:');
    expect(model.embedding).toBeLessThan(model.parameters);
    expect(memoryBytes(model)).toBeGreaterThan(model.parameters);
  });
});

/** Sizes in bytes of the 4-bit files on the hub, in October 2026. */
test.each([
  ['onnx-community/Qwen3-0.6B-ONNX', 919e6],
  ['onnx-community/Qwen3-1.7B-ONNX', 2147e6],
])('the stated download of %s is within 5%% of %i bytes', (id, published) => {
  const model = RECOMMENDED_MODELS.find((one) => one.id === id)!;
  expect(Math.abs(downloadBytes(model) / published - 1)).toBeLessThan(0.05);
});

test.each([
  [64, 'Mapika/decider-4b', 'onnx-community/Qwen3-4B-Instruct-2507-ONNX'],
  [24, 'Mapika/decider-2b', 'onnx-community/Qwen3-1.7B-ONNX'],
  [8, 'Mapika/decider-0.8b', 'onnx-community/Qwen2.5-0.5B-Instruct'],
  [0.25, undefined, undefined],
])('with %s GiB of memory: %s to decide, %s to extract', (gib, decides, extracts) => {
  expect(modelFor(gib * GIB, 'decisions')?.id).toBe(decides);
  expect(modelFor(gib * GIB, 'extraction')?.id).toBe(extracts);
});

test('decision models come first, and say what they are', () => {
  const families = RECOMMENDED_MODELS.map(({ family }) => family !== undefined);
  expect(families).toEqual(families.toSorted((one, other) => Number(other) - Number(one)));
});

import { describe, expect, it } from 'vitest';
import { readAll } from '../onnx/format/tensor-data.ts';
import { mergeLora } from './lora.ts';
import { floatTensor, type StoredTensor, type WeightSource } from './weight-source.ts';

function weights(tensors: Readonly<Record<string, number[][]>>): WeightSource {
  return new Map(
    Object.entries(tensors).map(([name, rows]): [string, StoredTensor] => [
      name,
      {
        name,
        dtype: 'F32',
        dims: [rows.length, rows[0]?.length ?? 0],
        data: { bytes: new Uint8Array(Float32Array.from(rows.flat()).buffer) },
      },
    ]),
  );
}

const BASE = weights({
  'model.language_model.layers.0.mlp.up_proj.weight': [
    [1, 2],
    [3, 4],
    [5, 6],
  ],
  'model.language_model.norm.weight': [[1, 1]],
});
const MODULE = 'base_model.model.layers.0.mlp.up_proj';
const A = `${MODULE}.lora_A.weight`;
const B = `${MODULE}.lora_B.weight`;

describe('a low-rank adapter', () => {
  it('is added to its matrix, wherever the language model is in either checkpoint', () => {
    const scales: unknown[] = [];
    const merged = mergeLora(BASE, weights({ [A]: [[1, 10]], [B]: [[1], [0], [-2]] }), (...asked) => {
      scales.push(asked);
      return 0.5;
    });
    const stored = merged.get('model.language_model.layers.0.mlp.up_proj.weight');
    expect([...new Float32Array(readAll(floatTensor(stored as StoredTensor)).buffer)]).toEqual([1.5, 7, 3, 4, 4, -4]);
    expect(scales).toEqual([['layers.0.mlp.up_proj', 1]]);
    expect(merged.get('model.language_model.norm.weight')).toBe(BASE.get('model.language_model.norm.weight'));
  });

  it.each<[string, Record<string, number[][]>, RegExp]>([
    ['half a pair', { [A]: [[1, 1]] }, /only one of the two matrices for "layers.0.mlp.up_proj"/],
    ['another rank in its two matrices', { [A]: [[1, 1]], [B]: [[1, 1]] }, /do not fit/],
    ['another size', { [A]: [[1, 1, 1]], [B]: [[1], [1], [1]] }, /do not fit/],
    [
      'a module that the base lacks',
      { [A.replace('up', 'gate')]: [[1, 1]], [B.replace('up', 'gate')]: [[1], [1], [1]] },
      /changes "layers.0.mlp.gate_proj", which its base model does not have/,
    ],
    [
      'a vector of magnitudes (DoRA)',
      { [A]: [[1, 1]], [B]: [[1], [1], [1]], [`${MODULE}.lora_magnitude_vector`]: [[1]] },
      /has the tensor "base_model.model.layers.0.mlp.up_proj.lora_magnitude_vector"/,
    ],
    ['a whole layer', { 'base_model.model.lm_head.weight': [[1]] }, /has the tensor "base_model.model.lm_head.weight"/],
  ])('is refused with %s', (_, adapter, message) => {
    expect(() => mergeLora(BASE, weights(adapter), () => 1)).toThrow(message);
  });
});

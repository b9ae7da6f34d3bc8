import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from '../../lib/at.ts';
import { DataType, type Graph, type Model, makeNode, makeTensor, type Node } from '../../runtime/onnx/model.ts';
import { WeightsWriter, writeModel } from '../../runtime/onnx/write-model.ts';
import { Noise } from './noise.ts';
import type { Shape } from './shapes.ts';

/**
 * Writes the graph that the onnxruntime-genai model builder creates for this shape, in bfloat16, embeddings tied to the
 * head.
 */
export function writeRandomModel(folder: string, shape: Shape): void {
  const { hidden, heads, kvHeads, headSize, intermediate, vocabulary, layers, context } = shape;
  const noise = new Noise(12345);
  const graph: Graph = { nodes: [], initializers: new Map(), inputs: [], outputs: [], rest: [] };
  const add = (op: string, inputs: string[], outputs: string[], attributes = {}, domain = ''): string => {
    const node: Node = makeNode(op, inputs, outputs, attributes, domain);
    graph.nodes.push(node);
    return at(outputs, 0);
  };
  const weight = (name: string, dims: number[], amplitude: number): string => {
    const length = dims.reduce((product, dim) => product * dim, 2);
    const data = { length, pieces: () => noise.bfloat16(length / 2, amplitude) };
    graph.initializers.set(name, { name, dataType: DataType.bfloat16, dims, data });
    return name;
  };
  const constant = (name: string, values: Float32Array | BigInt64Array, dims: number[]): string => {
    graph.initializers.set(name, makeTensor(name, dims, values));
    return name;
  };
  const linear = (name: string, x: string, inputs: number, outputs: number): string =>
    add('MatMul', [x, weight(`${name}.weight`, [inputs, outputs], Math.sqrt(3 / inputs))], [name]);
  const ones = (name: string): string => constant(name, new Float32Array(hidden).fill(1), [hidden]);
  const MS = 'com.microsoft';
  const EPSILON = { epsilon: { float: 1e-6 } };

  const integers = (name: string, second: string) =>
    graph.inputs.push({ name, dataType: DataType.int64, dims: ['batch_size', second] });
  integers('input_ids', 'sequence_length');
  integers('attention_mask', 'total_sequence_length');
  constant('one', BigInt64Array.of(1n), [1]);
  constant('index_one', BigInt64Array.of(1n), []);
  add('ReduceSum', ['attention_mask', 'one'], ['mask_sum'], { keepdims: 0 });
  add('Sub', ['mask_sum', 'one'], ['mask_last']);
  add('Cast', ['mask_last'], ['seqlens_k'], { to: DataType.int32 });
  add('Shape', ['attention_mask'], ['mask_shape']);
  add('Gather', ['mask_shape', 'index_one'], ['total_64'], { axis: 0 });
  add('Cast', ['total_64'], ['total'], { to: DataType.int32 });
  const [cos, sin] = rotaryTables(shape);
  constant('cos_cache', cos, [context, headSize / 2]);
  constant('sin_cache', sin, [context, headSize / 2]);

  weight('lm_head.weight', [hidden, vocabulary], Math.sqrt(3 / hidden));
  add('Transpose', ['lm_head.weight'], ['embedding'], { perm: [1, 0] });
  let residual = add('Gather', ['embedding', 'input_ids'], ['embedded']);
  const norm = { axis: -1, stash_type: 1, ...EPSILON };
  let x = add('SimplifiedLayerNormalization', [residual, ones('norm.0')], ['normed.0'], norm);
  for (let layer = 0; layer < layers; layer++) {
    const name = (part: string) => `layer.${layer}.${part}`;
    const kv = (['key', 'value'] as const).map((part) => [
      `past_key_values.${layer}.${part}`,
      `present.${layer}.${part}`,
    ]);
    for (const [past, present] of kv) {
      const dims = ['batch_size', kvHeads, 'length', headSize];
      graph.inputs.push({ name: past!, dataType: DataType.bfloat16, dims });
      graph.outputs.push({ name: present!, dataType: DataType.bfloat16, dims });
    }
    const width = (heads + 2 * kvHeads) * headSize;
    const product = linear(name('qkv'), x, hidden, width);
    const qkv = add('Add', [product, weight(name('qkv.bias'), [width], 0.5)], [name('qkv.biased')]);
    const attention = add(
      'GroupQueryAttention',
      [qkv, '', '', at(at(kv, 0), 0), at(at(kv, 1), 0), 'seqlens_k', 'total', 'cos_cache', 'sin_cache'],
      [name('attention'), at(at(kv, 0), 1), at(at(kv, 1), 1)],
      { num_heads: heads, kv_num_heads: kvHeads, scale: { float: headSize ** -0.5 }, do_rotary: 1 },
      MS,
    );
    const o = linear(name('o'), attention, heads * headSize, hidden);
    const skip = (from: string, part: string, last = false): void => {
      const outputs = last ? [name(part)] : [name(part), '', '', name(`${part}.residual`)];
      add('SkipSimplifiedLayerNormalization', [residual, from, ones(name(`${part}.weight`))], outputs, EPSILON, MS);
      residual = name(`${part}.residual`);
      x = name(part);
    };
    skip(o, 'post_attention');
    const gate = linear(name('gate'), x, hidden, intermediate);
    const up = linear(name('up'), x, hidden, intermediate);
    const silu = add('Mul', [gate, add('Sigmoid', [gate], [name('sigmoid')])], [name('silu')]);
    const down = linear(name('down'), add('Mul', [silu, up], [name('gated')]), intermediate, hidden);
    skip(down, 'output', layer === layers - 1);
  }
  graph.outputs.unshift({
    name: 'logits',
    dataType: DataType.bfloat16,
    dims: ['batch_size', 'sequence_length', vocabulary],
  });
  add('MatMul', [x, 'lm_head.weight'], ['logits']);

  const opsets = new Map([
    ['', 21],
    [MS, 1],
  ]);
  const model: Model = { graph, opsets, rest: [{ no: 1, wire: 0, bytes: Uint8Array.of(10) }] }; // IR version 10
  const weights = new WeightsWriter(folder, 'model.onnx.data');
  const tensors = Array.from(graph.initializers.values(), (tensor) => weights.write(tensor, () => {}));
  weights.close();
  writeModel(join(folder, 'model.onnx'), model, tensors);
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ max_position_embeddings: context }));
}

/** Computes the tables of rotary positions (Su et al. 2021, RoFormer, equation 15). */
function rotaryTables({ context, headSize, ropeTheta }: Shape): [cos: Float32Array, sin: Float32Array] {
  const half = headSize / 2;
  const cos = new Float32Array(context * half);
  const sin = new Float32Array(context * half);
  for (let position = 0; position < context; position++) {
    for (let pair = 0; pair < half; pair++) {
      const angle = position * ropeTheta ** ((-2 * pair) / headSize);
      cos[position * half + pair] = Math.cos(angle);
      sin[position * half + pair] = Math.sin(angle);
    }
  }
  return [cos, sin];
}

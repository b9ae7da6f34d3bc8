import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { expect, it } from 'vitest';
import {
  DataType,
  makeNode,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
  type Tensor as Weight,
} from '../format/model.ts';
import { WeightsWriter, writeModel } from '../format/write-model.ts';
import { fuseEmbeddings, MEDIA_FEATURES, MEDIA_ROWS } from './fuse-embeddings.ts';

const perToken = ['batch', 'length'];
const floats = (name: string, dims: (string | number)[]) => ({ name, dataType: DataType.float, dims });

function modelOf(
  nodes: OnnxNode[],
  { inputs, outputs }: Pick<OnnxModel['graph'], 'inputs' | 'outputs'>,
  weights: Weight[] = [],
) {
  const initializers = new Map(weights.map((weight) => [weight.name, weight]));
  const rest = [{ no: 1, wire: 0 as const, bytes: Uint8Array.of(10) }]; // IR version 10
  return { graph: { nodes, initializers, inputs, outputs, rest: [] }, opsets: new Map([['', 21]]), rest };
}

/** Returns the nodes that put features in the place of one token, as mobius writes them. */
function merge(kind: string, text: string, merged: string): OnnxNode[] {
  return [
    makeNode('Equal', ['input_ids', kind], [`is_${kind}`]),
    makeNode('Unsqueeze', [`is_${kind}`, 'axis'], [`column_${kind}`]),
    makeNode('Concat', [`${kind}_features`, 'zeros'], [`padded_${kind}`], { axis: 0 }),
    makeNode('Gather', [`padded_${kind}`, 'first'], [`chosen_${kind}`]),
    makeNode('Where', [`column_${kind}`, `chosen_${kind}`, text], [merged]),
  ];
}

/** Embeds the tokens 0 to 3 as (0, 0) to (3, 3). The tokens 2 and 3 stand for images and audio. */
function embeddings(): OnnxModel {
  const weights = [
    makeTensor('table', [4, 2], Float32Array.of(0, 0, 1, 1, 2, 2, 3, 3)),
    makeTensor('zeros', [1, 2], new Float32Array(2)),
    makeTensor('image', [], BigInt64Array.of(2n)),
    makeTensor('audio', [], BigInt64Array.of(3n)),
    makeTensor('axis', [1], BigInt64Array.of(-1n)),
    makeTensor('first', [1, 1], BigInt64Array.of(0n)),
    makeTensor('ten', [], Float32Array.of(10)),
  ];
  const nodes = [
    makeNode('Gather', ['table', 'input_ids'], ['text']),
    ...merge('image', 'text', 'with_images'),
    ...merge('audio', 'with_images', 'inputs_embeds'),
    makeNode('Mul', ['inputs_embeds', 'ten'], ['per_layer_inputs']),
  ];
  const features = ['image_features', 'audio_features'].map((name) => floats(name, ['features', 2]));
  const inputs = [{ name: 'input_ids', dataType: DataType.int64, dims: perToken }, ...features];
  return modelOf(
    nodes,
    { inputs, outputs: ['inputs_embeds', 'per_layer_inputs'].map((name) => floats(name, perToken)) },
    weights,
  );
}

it('puts features where the graph for embeddings puts them, so what it computes from them is right', async () => {
  const inputs = ['inputs_embeds', 'per_layer_inputs'].map((name) => floats(name, [...perToken, 2]));
  const decoder = modelOf([makeNode('Add', ['inputs_embeds', 'per_layer_inputs'], ['sum'])], {
    inputs,
    outputs: [floats('sum', [...perToken, 2])],
  });
  const fused = fuseEmbeddings(decoder, embeddings());
  expect(fused.graph.inputs.map(({ name }) => name)).toEqual(['input_ids', MEDIA_FEATURES, MEDIA_ROWS]);
  const folder = mkdtempSync(join(tmpdir(), 'assay-fused-'));
  try {
    const weights = new WeightsWriter(folder, 'weights.bin');
    const written = [...fused.graph.initializers.values()].map((weight) => weights.write(weight, () => {}));
    weights.close();
    writeModel(join(folder, 'model.onnx'), fused, written);
    const session = await InferenceSession.create(join(folder, 'model.onnx'));
    const { sum } = await session.run({
      input_ids: new Tensor('int64', BigInt64Array.of(1n, 0n, 0n), [1, 3]),
      [MEDIA_ROWS]: new Tensor('int64', BigInt64Array.of(0n, 2n, 1n), [1, 3]),
      [MEDIA_FEATURES]: new Tensor('float32', Float32Array.of(0, 0, 5, 6, 7, 8), [3, 2]),
    });
    expect([...(sum?.data ?? [])]).toEqual([11, 11, 77, 88, 55, 66]);
    await session.release();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('refuses a graph that puts features in the place of media in another way, and computes more from them', () => {
  const made = embeddings();
  for (const node of made.graph.nodes) if (node.op === 'Where') node.op = 'ScatterND';
  const inputs = ['inputs_embeds', 'per_layer_inputs'].map((name) => floats(name, [...perToken, 2]));
  expect(() => fuseEmbeddings(modelOf([], { inputs, outputs: [] }), made)).toThrow(/in a way that is not known/);
});

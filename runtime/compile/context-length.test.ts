import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeNode, makeTensor, type OnnxModel } from '../onnx/format/model.ts';
import { contextLength } from './context-length.ts';

const WINDOWS = { sliding_window: 64, layer_types: ['sliding_attention', 'full_attention'] };
const LATER_FACTOR = { llama_4_scaling_beta: 0.1, original_max_position_embeddings: 128 };

function modelWith(attributes: Record<string, number>, op = 'GroupQueryAttention'): OnnxModel {
  const node = makeNode(op, ['query'], ['out'], attributes, 'com.microsoft');
  return {
    opsets: new Map(),
    rest: [],
    graph: { nodes: [node], initializers: new Map(), inputs: [], outputs: [], rest: [] },
  };
}
const TWO_ROTATIONS = {
  full_attention: { rope_type: 'yarn', factor: 8 },
  sliding_attention: { rope_type: 'default' },
};

function lengthFor(config: object, model: OnnxModel): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'assay-context-'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ max_position_embeddings: 512, ...config }));
  return contextLength(folder, model).finally(() => rmSync(folder, { recursive: true }));
}

/** Looks up the cosines of each token in a table of 100 rows, as mobius does for positions in three parts. */
function modelWithTable(): OnnxModel {
  const model = modelWith({});
  const cosines = makeTensor('cosines', [100, 1], new Float32Array(100));
  model.graph.initializers.set('cosines', cosines);
  model.graph.nodes.unshift(
    makeNode('Gather', ['cosines', 'rows'], ['height']),
    makeNode('Gather', ['cosines', 'columns'], ['width']),
    makeNode('Where', ['is_height', 'height', 'width'], ['mixed']),
    makeNode('RotaryEmbedding', ['query', 'mixed', 'mixed'], ['rotated']),
  );
  return model;
}

test.each([
  ['as the configuration says', {}, modelWith({}), 512],
  ['as GPT-2 says', { max_position_embeddings: undefined, n_positions: 256 }, modelWith({}), 256],
  ['as many positions as a table of rotary positions has', {}, modelWithTable(), 100],
  ['one window, where the graph leaves windows out', WINDOWS, modelWith({}), 64],
  ['all, where the graph has the windows', WINDOWS, modelWith({ local_window_size: 64 }), 512],
  ['all, where a mask may hold the windows', WINDOWS, modelWith({}, 'MatMul'), 512],
  ['all, where no layer slides', { ...WINDOWS, layer_types: ['full_attention'] }, modelWith({}), 512],
  ['the first length, before a factor that no graph has', { rope_parameters: LATER_FACTOR }, modelWith({}), 128],
  ['the same within a model with pictures', { text_config: { rope_parameters: LATER_FACTOR } }, modelWith({}), 128],
])('%s', async (_, config, model, expected) => {
  expect(await lengthFor(config, model)).toBe(expected);
});

test.each([
  ['a scaling of full layers alone', { model_type: 'olmo3', rope_scaling: { rope_type: 'yarn', factor: 8 } }],
  ['rotary positions by kind of layer', { rope_parameters: TWO_ROTATIONS }],
])('a graph without windows is refused where the model has %s', async (_, config) => {
  await expect(lengthFor({ ...WINDOWS, ...config }, modelWith({}))).rejects.toThrow(/leaves out the sliding windows/);
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ggufBytes, type WrittenTensor } from '../checkpoint/gguf/gguf.fixture.ts';
import { readGguf } from '../checkpoint/gguf/read-gguf.ts';
import { floatTensor } from '../checkpoint/weight-source.ts';
import { readFloats } from '../onnx/format/tensor-data.ts';
import { readArchitecture } from './families.ts';
import { ggufConfig, ggufWeights } from './gguf.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-gguf-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A tensor of floats whose rows count from 0. `dims`: the fastest first. */
function counting(name: string, ...dims: number[]): WrittenTensor {
  const count = dims.reduce((product, dim) => product * dim, 1);
  const floats = Float32Array.from({ length: count }, (_, at) => Math.floor(at / (dims[0] ?? 1)));
  return { name, dims, type: 0, bytes: new Uint8Array(floats.buffer) };
}

type Metadata = Parameters<typeof ggufBytes>[0];
const SIZES: Metadata = [
  ['llama.block_count', { u32: 1 }],
  ['llama.embedding_length', { u32: 16 }],
  ['llama.attention.head_count', { u32: 2 }],
  ['llama.attention.head_count_kv', { u32: 1 }],
  ['llama.context_length', { u32: 64 }],
  ['llama.feed_forward_length', { u32: 24 }],
  ['llama.attention.layer_norm_rms_epsilon', { f32: 0.5 }],
  ['llama.rope.freq_base', { f32: 500 }],
];
const LLAMA: Metadata = [['general.architecture', { text: 'llama' }], ...SIZES];
const TENSORS = [
  counting('token_embd.weight', 16, 8),
  counting('output_norm.weight', 16),
  counting('blk.0.attn_norm.weight', 16),
  counting('blk.0.attn_q.weight', 16, 16),
  counting('blk.0.attn_k.weight', 16, 8),
  counting('blk.0.attn_v.weight', 16, 8),
  counting('blk.0.attn_output.weight', 16, 16),
  counting('blk.0.ffn_norm.weight', 16),
  counting('blk.0.ffn_gate.weight', 16, 24),
  counting('blk.0.ffn_up.weight', 16, 24),
  counting('blk.0.ffn_down.weight', 24, 16),
];

function read(metadata: Metadata, tensors: readonly WrittenTensor[] = TENSORS) {
  const file = join(folder, 'model.gguf');
  writeFileSync(file, ggufBytes(metadata, tensors));
  return readGguf(file);
}

test('metadata become the numbers of config.json', () => {
  const { layers, ...whole } = readArchitecture(ggufConfig(read(LLAMA)), 64);
  expect(whole).toMatchObject({ family: 'llama', vocab: 8, hidden: 16, context: 64, epsilon: 0.5, tied: true });
  expect(layers).toMatchObject([{ inner: 24, mixer: { heads: 2, kvHeads: 1, headSize: 8, window: null } }]);
});

test.each([-1, 8, 1.5, 2 ** 32 - 1])('the id %d, which the vocabulary does not have, names no token', (id) => {
  const ids = ['bos', 'eos', 'eot'].map((name) => [`tokenizer.ggml.${name}_token_id`, { f64: id }] as const);
  const config = ggufConfig(read([...LLAMA, ...ids]));
  expect([config.bos_token_id, config.eos_token_id]).toEqual([undefined, []]);
});

test('names are those of transformers, and the rows of queries and keys are in its order', () => {
  const weights = ggufWeights(read(LLAMA));
  const firstColumn = (name: string) => {
    const stored = weights.get(name);
    const [, width = 1] = stored?.dims ?? [];
    return stored && [...readFloats(floatTensor(stored))].filter((_, at) => at % width === 0);
  };
  expect(weights.size).toBe(TENSORS.length);
  const halves = [0, 2, 4, 6, 1, 3, 5, 7];
  expect(firstColumn('model.layers.0.self_attn.q_proj.weight')).toEqual([...halves, ...halves.map((row) => row + 8)]);
  expect(firstColumn('model.layers.0.self_attn.k_proj.weight')).toEqual(halves);
  expect(firstColumn('model.layers.0.self_attn.v_proj.weight')).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(weights.get('model.layers.0.mlp.down_proj.weight')?.dims).toEqual([16, 24]);
  expect(weights.get('model.embed_tokens.weight')?.name).toBe('model.embed_tokens.weight');
});

test('only the architecture llama has its own order of rows', () => {
  const qwen = LLAMA.map(([key, value]) => [key.replace('llama.', 'qwen2.'), value] as const);
  const stored = ggufWeights(read([['general.architecture', { text: 'qwen2' }], ...qwen.slice(1)])).get(
    'model.layers.0.self_attn.k_proj.weight',
  );
  expect(stored && readFloats(floatTensor(stored))[16]).toBe(1);
});

test('factors of the frequencies are those of Llama 3', () => {
  const scaling = { rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4 };
  const config = ggufConfig(read(LLAMA));
  const inverse = (own: object) => {
    const mixer = readArchitecture({ ...config, ...own }, 64).layers[0]?.mixer;
    return mixer?.kind === 'attention' ? [...(mixer.rotary?.inverse ?? [])] : [];
  };
  const [plain, wanted] = [
    inverse({}),
    inverse({ rope_scaling: { ...scaling, original_max_position_embeddings: 32 } }),
  ];
  const factors = Float32Array.from(plain, (value, at) => value / (wanted[at] ?? 1));
  const bytes = new Uint8Array(factors.buffer);
  const stored = { name: 'rope_freqs.weight', dims: [4], type: 0, bytes };
  const own = inverse(ggufConfig(read(LLAMA, [...TENSORS, stored])));
  expect(new Set(factors).size).toBeGreaterThan(1);
  for (const [at, value] of wanted.entries()) expect(own[at]).toBeCloseTo(value, 7);
  expect(ggufWeights(read(LLAMA, [...TENSORS, stored])).has('rope_freqs.weight')).toBe(false);
});

test.each<[string, Metadata, RegExp]>([
  ['an unknown architecture', [['general.architecture', { text: 'mamba' }]], /general.architecture: "mamba"/],
  ['no architecture', SIZES, /general.architecture: undefined/],
  ['an unknown key', [...LLAMA, ['llama.new_scale', { f32: 2 }]], /metadata says llama.new_scale: 2/],
  ['experts', [...LLAMA, ['llama.expert_count', { u32: 8 }]], /metadata says llama.expert_count: 8/],
  ['another size of values', [...LLAMA, ['llama.attention.value_length', { u32: 4 }]], /value_length: 4/],
  ['more tokens than embeddings', [...LLAMA, ['tokenizer.ggml.tokens', { texts: 'abcdefghi'.split('') }]], /9 tokens/],
  ['a missing size', LLAMA.slice(0, -3), /does not say llama.feed_forward_length/],
])('a file with %s is refused', (_, metadata, message) => {
  expect(() => ggufConfig(read(metadata))).toThrow(message);
});

test.each([
  'blk.0.attn_sinks.weight',
  'output_scale.weight',
  'model.layers.0.self_attn.v_proj.weight',
  'blk.0.toString.weight',
  'toString',
])('a tensor %s is refused by its name', (name) => {
  expect(() => ggufWeights(read(LLAMA, [...TENSORS, counting(name, 16, 8)]))).toThrow(`the tensor "${name}"`);
});

test('queries of another number of rows are refused', () => {
  const tensors = TENSORS.map((one) => (one.name === 'blk.0.attn_q.weight' ? counting(one.name, 16, 8) : one));
  expect(() => ggufWeights(read(LLAMA, tensors))).toThrow(/"blk.0.attn_q.weight" has not 16 rows/);
});

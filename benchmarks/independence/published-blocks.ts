import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from '../../lib/at.ts';
import { readGguf } from '../../runtime/checkpoint/gguf/read-gguf.ts';
import { floatTensor, type StoredTensor } from '../../runtime/checkpoint/weight-source.ts';
import { sourceGraphs } from '../../runtime/compile/source.ts';
import type { Names } from '../../runtime/graph/architecture.ts';
import { readArchitecture } from '../../runtime/graph/families.ts';
import { ggufConfig } from '../../runtime/graph/gguf.ts';
import { onnxWeights } from '../../runtime/graph/onnx.ts';
import { readModel } from '../../runtime/onnx/format/read-model.ts';
import { readAll, readFloats } from '../../runtime/onnx/format/tensor-data.ts';
import { GGUF_FILE } from '../../runtime/store/model-files.ts';
import { type GgufTensor, writeGguf } from '../models/gguf.ts';

/** Names of a layer's matrices in a GGUF file. */
const MATRICES: readonly (readonly [role: keyof Names, name: string])[] = [
  ['query', 'attn_q'],
  ['key', 'attn_k'],
  ['value', 'attn_v'],
  ['output', 'attn_output'],
  ['gate', 'ffn_gate'],
  ['up', 'ffn_up'],
  ['down', 'ffn_down'],
];
/** Weights in a block of the type q4_0, and the bytes of its scale. */
const [SIZE, SCALE] = [32, 2];

/**
 * Writes a Llama model that was published as a graph with blocks of 4 bits, such as the starter, to a folder as a GGUF
 * file with the same weights in blocks of 32 (q4_0), and its tokenizer.
 */
export function writeAsGguf(source: string, folder: string): void {
  const config = JSON.parse(readFileSync(join(source, 'config.json'), 'utf8'));
  const { graph } = readModel(sourceGraphs(source, 'keep').model);
  const { architecture, weights } = onnxWeights(graph, readArchitecture(config, config.max_position_embeddings));
  const { names, layers } = architecture;
  const stored = (name: string): StoredTensor => {
    const found = weights.get(`model.${name}.weight`);
    if (!found) throw new Error(`the graph has no weights of the name ${name}`);
    return found;
  };
  const tensors = [
    blocks('token_embd', stored(names.embedding)),
    norm('output_norm', stored(names.finalNorm)),
    ...layers.flatMap(({ mixer }, layer) => {
      if (mixer.kind !== 'attention') throw new Error('a GGUF file of this kind has only layers with attention');
      const { heads, kvHeads, headSize } = mixer;
      const first = { query: 0, key: heads * headSize, value: (heads + kvHeads) * headSize };
      const own = (path: string) => stored(`layers.${layer}.${path}`);
      const all = MATRICES.map(([role, name]) => {
        const rows = role === 'query' ? heads * headSize : kvHeads * headSize;
        const part = role === 'query' || role === 'key' || role === 'value' ? first[role] : undefined;
        const joint = part !== undefined && names.joint ? names.joint : undefined;
        const order =
          part === undefined
            ? undefined
            : Array.from(
                { length: rows },
                (_, row) => (joint ? part : 0) + sourceRow(row, role === 'value' ? 0 : headSize),
              );
        return blocks(`blk.${layer}.${name}`, own(joint ?? names[role] ?? ''), order);
      });
      return [
        norm(`blk.${layer}.attn_norm`, own(names.mixerNorm ?? '')),
        norm(`blk.${layer}.ffn_norm`, own(names.innerNorm ?? '')),
        ...all,
      ];
    }),
  ];
  const uint32 = (value: number) => ({ type: 'uint32', value }) as const;
  const metadata = {
    'general.architecture': { type: 'string', value: 'llama' },
    'llama.block_count': uint32(config.num_hidden_layers),
    'llama.context_length': uint32(config.max_position_embeddings),
    'llama.embedding_length': uint32(config.hidden_size),
    'llama.feed_forward_length': uint32(config.intermediate_size),
    'llama.attention.head_count': uint32(config.num_attention_heads),
    'llama.attention.head_count_kv': uint32(config.num_key_value_heads),
    'llama.attention.layer_norm_rms_epsilon': { type: 'float32', value: config.rms_norm_eps },
    'llama.rope.freq_base': { type: 'float32', value: config.rope_theta },
    'tokenizer.ggml.eos_token_id': uint32(config.eos_token_id),
  } as const;
  const file = join(folder, GGUF_FILE);
  writeGguf(file, metadata, tensors);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(ggufConfig(readGguf(file))));
  for (const name of ['tokenizer.json', 'tokenizer_config.json']) copyFileSync(join(source, name), join(folder, name));
}

/**
 * Returns the row of a head of this size that llama.cpp has at a place: it has the two elements of a rotated pair side
 * by side, and not in two halves. Size 0: rows are in order.
 */
function sourceRow(place: number, headSize: number): number {
  if (headSize === 0) return place;
  const within = place % headSize;
  return place - within + (within >> 1) + (within % 2) * (headSize / 2);
}

function norm(name: string, stored: StoredTensor): GgufTensor {
  const values = readFloats(floatTensor(stored));
  return { name: `${name}.weight`, type: 'f32', dims: stored.dims, pieces: () => [new Uint8Array(values.buffer)] };
}

/** Returns the rows of a matrix in this order, or as they are, in blocks of `SIZE`. */
function blocks(name: string, { published }: StoredTensor, order?: readonly number[]): GgufTensor {
  if (!published || !('blocks' in published)) throw new Error(`${name} is not in blocks`);
  const { rows, columns, bits, size, levels, scales, zeros } = published.blocks;
  if (bits !== 4 || zeros || columns % size !== 0 || size % SIZE !== 0) throw new Error(`${name}: q4_0 is not such`);
  const taken = order ?? Array.from({ length: rows }, (_, row) => row);
  return {
    name: `${name}.weight`,
    type: 'q4_0',
    dims: [columns, taken.length],
    *pieces() {
      const [bytes, factors] = [readAll(levels), readFloats(scales)];
      const level = (element: number) => (at(bytes, element >> 1) >> (4 * (element & 1))) & 15;
      for (const row of taken) {
        const piece = new Uint8Array((columns / SIZE) * (SCALE + SIZE / 2));
        const view = new DataView(piece.buffer);
        for (let block = 0; block < columns / SIZE; block++) {
          const [start, first] = [block * (SCALE + SIZE / 2), row * columns + block * SIZE];
          view.setFloat16(start, at(factors, Math.floor(first / size)), true);
          // The first half of a block is in the low halves of the bytes, the second one in the high halves.
          for (let i = 0; i < SIZE / 2; i++)
            piece[start + SCALE + i] = level(first + i) | (level(first + SIZE / 2 + i) << 4);
        }
        yield piece;
      }
    },
  };
}

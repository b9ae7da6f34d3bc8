import { at } from '../../lib/at.ts';
import { byteAlphabet } from './byte-alphabet.ts';
import { type GgufTensor, type Metadata, TENSOR_TYPES, type TensorType, tensorBytes, writeGguf } from './gguf.ts';
import type { Noise } from './noise.ts';
import type { Shape } from './shapes.ts';

/** Special tokens with Qwen2's names, which some programs look for. */
const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
// Values of `token_type` in llama.cpp's vocabulary.
const NORMAL = 1;
const CONTROL = 3;
/** Sign bit of a float16. */
const SIGN = 0x8000;

type BlockType = Exclude<TensorType, 'f32'>;

/**
 * Writes a GGUF file for llama.cpp: a random model of Qwen2's architecture, in the shape that `writeRandomModel`
 * writes. The head shares the weights of the embedding.
 */
export function writeGgufModel(file: string, shape: Shape, weights: BlockType, noise: Noise): void {
  writeGguf(file, metadata(shape), tensors(shape, weights, noise));
}

function metadata({ layers, hidden, heads, kvHeads, intermediate, vocabulary, context, ropeTheta }: Shape): Metadata {
  const uint32 = (value: number) => ({ type: 'uint32', value }) as const;
  const bytes = byteAlphabet();
  const end = bytes.length + SPECIAL.length;
  const fillers = Array.from({ length: vocabulary - end }, (_, i) => `w${(end + i).toString(36)}`);
  return {
    'general.architecture': { type: 'string', value: 'qwen2' },
    'general.name': { type: 'string', value: 'random weights' },
    'qwen2.block_count': uint32(layers),
    'qwen2.context_length': uint32(context),
    'qwen2.embedding_length': uint32(hidden),
    'qwen2.feed_forward_length': uint32(intermediate),
    'qwen2.attention.head_count': uint32(heads),
    'qwen2.attention.head_count_kv': uint32(kvHeads),
    'qwen2.attention.layer_norm_rms_epsilon': { type: 'float32', value: 1e-6 },
    'qwen2.rope.freq_base': { type: 'float32', value: ropeTheta },
    'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { type: 'string', value: 'qwen2' },
    'tokenizer.ggml.tokens': { type: 'strings', value: [...bytes, ...SPECIAL, ...fillers] },
    'tokenizer.ggml.token_type': {
      type: 'int32s',
      value: Array.from({ length: vocabulary }, (_, id) => (id >= bytes.length && id < end ? CONTROL : NORMAL)),
    },
    // llama.cpp needs at least one merge. The benchmarks' texts never contain this one.
    'tokenizer.ggml.merges': { type: 'strings', value: ['Q Q'] },
    'tokenizer.ggml.bos_token_id': uint32(bytes.length),
    'tokenizer.ggml.eos_token_id': uint32(end - 1),
    'tokenizer.ggml.add_bos_token': { type: 'bool', value: false },
  };
}

function tensors(shape: Shape, weights: TensorType, noise: Noise): GgufTensor[] {
  const { layers, hidden, heads, kvHeads, headSize, intermediate, vocabulary } = shape;
  const matrix = (name: string, inputs: number, outputs: number): GgufTensor => {
    const tensor = { name: `${name}.weight`, type: weights, dims: [inputs, outputs] };
    return { ...tensor, pieces: () => quantized(tensor, Math.sqrt(3 / inputs), noise) };
  };
  const vector = (name: string, length: number, value: number): GgufTensor => ({
    name,
    type: 'f32',
    dims: [length],
    pieces: () => [new Uint8Array(new Float32Array(length).fill(value).buffer)],
  });
  const layer = (i: number): GgufTensor[] => {
    const block = (part: string) => `blk.${i}.${part}`;
    const projections = { q: heads * headSize, k: kvHeads * headSize, v: kvHeads * headSize };
    return [
      vector(block('attn_norm.weight'), hidden, 1),
      ...Object.entries(projections).flatMap(([part, outputs]) => [
        matrix(block(`attn_${part}`), hidden, outputs),
        vector(block(`attn_${part}.bias`), outputs, 0.1),
      ]),
      matrix(block('attn_output'), heads * headSize, hidden),
      vector(block('ffn_norm.weight'), hidden, 1),
      matrix(block('ffn_gate'), hidden, intermediate),
      matrix(block('ffn_up'), hidden, intermediate),
      matrix(block('ffn_down'), intermediate, hidden),
    ];
  };
  return [
    matrix('token_embd', hidden, vocabulary),
    ...Array.from({ length: layers }, (_, i) => layer(i)).flat(),
    vector('output_norm.weight', hidden, 1),
  ];
}

/** Yields random quantized blocks whose values are between -amplitude and amplitude. */
function* quantized(tensor: Pick<GgufTensor, 'type' | 'dims'>, amplitude: number, noise: Noise): Generator<Uint8Array> {
  const { bytes } = TENSOR_TYPES[tensor.type];
  const scale = float16(amplitude / (tensor.type === 'q8_0' ? 128 : 8));
  const min = SIGN | float16(amplitude);
  for (const piece of noise.bytes(tensorBytes(tensor), bytes)) {
    const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength);
    for (let block = 0; block < piece.length; block += bytes) {
      view.setUint16(block, scale, true);
      if (tensor.type === 'q4_1') view.setUint16(block + 2, min, true);
    }
    yield piece;
  }
}

/** Converts a positive number to the bits of a float16, rounded down, which is exact enough for a scale. */
function float16(value: number): number {
  const bits = at(new Uint32Array(Float32Array.of(value).buffer), 0);
  const exponent = (bits >>> 23) - 127 + 15;
  return exponent <= 0 ? 0 : (exponent << 10) | ((bits >>> 13) & 0x3ff);
}

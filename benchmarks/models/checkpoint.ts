import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Noise } from './noise.ts';
import type { Shape } from './shapes.ts';

/** Returns the `config.json` of a model of Qwen2's architecture. */
export function qwen2Config(shape: Shape): Record<string, unknown> {
  return {
    model_type: 'qwen2',
    architectures: ['Qwen2ForCausalLM'],
    num_hidden_layers: shape.layers,
    hidden_size: shape.hidden,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    intermediate_size: shape.intermediate,
    vocab_size: shape.vocabulary,
    max_position_embeddings: shape.context,
    rope_theta: shape.ropeTheta,
    rms_norm_eps: 1e-6,
    hidden_act: 'silu',
    tie_word_embeddings: true,
  };
}

/**
 * Writes a checkpoint of a random model of Qwen2's architecture: `config.json`, and weights in bfloat16 as safetensors.
 * The head shares the weights of the embedding.
 */
export function writeCheckpoint(folder: string, shape: Shape, noise: Noise): void {
  const { layers, hidden, heads, kvHeads, headSize, intermediate, vocabulary } = shape;
  const tensors: { name: string; shape: number[] }[] = [];
  const add = (name: string, ...dims: number[]) => tensors.push({ name: `model.${name}`, shape: dims });
  add('embed_tokens.weight', vocabulary, hidden);
  for (let layer = 0; layer < layers; layer++) {
    const at = (name: string) => `layers.${layer}.${name}`;
    for (const [name, width] of [
      ['q', heads * headSize],
      ['k', kvHeads * headSize],
      ['v', kvHeads * headSize],
    ] as const) {
      add(at(`self_attn.${name}_proj.weight`), width, hidden);
      add(at(`self_attn.${name}_proj.bias`), width);
    }
    add(at('self_attn.o_proj.weight'), hidden, heads * headSize);
    for (const name of ['gate', 'up']) add(at(`mlp.${name}_proj.weight`), intermediate, hidden);
    add(at('mlp.down_proj.weight'), hidden, intermediate);
    for (const name of ['input_layernorm', 'post_attention_layernorm']) add(at(`${name}.weight`), hidden);
  }
  add('norm.weight', hidden);

  let end = 0;
  const header = tensors.map(({ name, shape: dims }) => {
    const begin = end;
    end += dims.reduce((product, dim) => product * dim, 2);
    return [name, { dtype: 'BF16', shape: dims, data_offsets: [begin, end] }] as const;
  });
  const json = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const file = openSync(join(folder, 'model.safetensors'), 'w');
  for (const bytes of [length, json]) writeSync(file, bytes);
  for (const { shape: dims } of tensors) {
    // Products keep the magnitude of the numbers.
    const amplitude = dims.length === 1 ? 1 : Math.sqrt(3 / (dims[1] ?? 1));
    const count = dims.reduce((product, dim) => product * dim, 1);
    for (const piece of noise.bfloat16(count, amplitude)) writeSync(file, piece);
  }
  closeSync(file);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(qwen2Config(shape)));
}

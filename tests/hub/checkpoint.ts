import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Random } from '../../runtime/engine/random.ts';
import { modelFixture } from '../fixture.ts';

const TOKENIZER = modelFixture('optimum/qwen3');
const CONFIG = {
  architectures: ['Qwen3ForCausalLM'],
  ...{ model_type: 'qwen3', hidden_size: 32, intermediate_size: 32, num_hidden_layers: 2, num_attention_heads: 4 },
  ...{ num_key_value_heads: 2, head_dim: 16, vocab_size: 512, max_position_embeddings: 512, rms_norm_eps: 1e-6 },
  ...{ hidden_act: 'silu', rope_theta: 1e4, tie_word_embeddings: true, eos_token_id: 2, torch_dtype: 'bfloat16' },
};

/** Lists the shapes of the weights that `CONFIG` describes. */
function shapes(): [name: string, dims: number[]][] {
  const layer = (number: number): [string, number[]][] =>
    [
      ['self_attn.q_proj', [64, 32]],
      ['self_attn.k_proj', [32, 32]],
      ['self_attn.v_proj', [32, 32]],
      ['self_attn.o_proj', [32, 64]],
      ['self_attn.q_norm', [16]],
      ['self_attn.k_norm', [16]],
      ['input_layernorm', [32]],
      ['post_attention_layernorm', [32]],
      ['mlp.gate_proj', [32, 32]],
      ['mlp.up_proj', [32, 32]],
      ['mlp.down_proj', [32, 32]],
    ].map(([name, dims]) => [`model.layers.${number}.${name}.weight`, dims as number[]]);
  return [['model.embed_tokens.weight', [512, 32]], ...layer(0), ...layer(1), ['model.norm.weight', [32]]];
}

/** Returns a safetensors file of random weights in bfloat16 with these shapes. */
export function safetensors(tensors: readonly [name: string, dims: number[]][], seed = 1): Buffer {
  const random = new Random(seed);
  const header: Record<string, unknown> = {};
  const parts: Buffer[] = [];
  let end = 0;
  for (const [name, dims] of tensors) {
    const count = dims.reduce((product, dim) => product * dim, 1);
    const values = Float32Array.from({ length: count }, () => (dims.length === 1 ? 1 : 0) + random.uniform() - 0.5);
    const halves = Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16);
    header[name] = { dtype: 'BF16', shape: dims, data_offsets: [end, end + 2 * count] };
    end += 2 * count;
    parts.push(Buffer.from(halves.buffer));
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}

/** Returns the files of a tiny chat model as its author would publish it: a checkpoint in two shards, no graph. */
export async function checkpointFiles(config: object = {}): Promise<Record<string, Buffer | string>> {
  const read = (name: string) => readFile(join(TOKENIZER, name));
  const all = shapes();
  const [one, two] = [all.slice(0, 12), all.slice(12)];
  const shard = (number: number) => `model-0000${number}-of-00002.safetensors`;
  const weight_map = Object.fromEntries([
    ...one.map(([name]) => [name, shard(1)]),
    ...two.map(([name]) => [name, shard(2)]),
  ]);
  return {
    'README.md': '# tiny',
    'config.json': JSON.stringify({ ...CONFIG, ...config }),
    'tokenizer.json': await read('tokenizer.json'),
    'tokenizer_config.json': await read('tokenizer_config.json'),
    [shard(1)]: safetensors(one),
    [shard(2)]: safetensors(two, 2),
    'model.safetensors.index.json': JSON.stringify({ metadata: { total_size: 1 }, weight_map }),
  };
}

/** Returns the files of a LoRA adapter of the model in `checkpointFiles`, without a tokenizer. */
export function adapterFiles(base: string): Record<string, Buffer | string> {
  const module = 'base_model.model.model.layers.0.self_attn.q_proj';
  const settings = { peft_type: 'LORA', r: 4, lora_alpha: 8, target_modules: ['q_proj'], task_type: 'CAUSAL_LM' };
  return {
    'README.md': '# adapter',
    'adapter_config.json': JSON.stringify({ ...settings, base_model_name_or_path: base }),
    'adapter_model.safetensors': safetensors([
      [`${module}.lora_A.weight`, [4, 32]],
      [`${module}.lora_B.weight`, [64, 4]],
    ]),
  };
}

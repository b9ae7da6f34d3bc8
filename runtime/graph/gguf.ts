import type { GgufFile } from '../checkpoint/gguf/read-gguf.ts';
import { floatTensor, rowsOf, type StoredTensor, type WeightSource } from '../checkpoint/weight-source.ts';
import { readFloats } from '../onnx/format/tensor-data.ts';
import { unusable } from '../onnx/unusable.ts';
import type { Names } from './architecture.ts';
import { ConfigKeys, Refused } from './config-keys.ts';
import { readArchitecture } from './families.ts';

/** Describes an architecture of GGUF files by the family of transformers that it is. */
interface GgufFamily {
  type: string;
  className: string;
  /** True if the rows of queries and keys are in llama.cpp's order: the two elements of a rotated pair side by side. */
  permuted?: true;
  /** Tells whether attention or the feed-forward part can have biases, which their tensors then show. */
  biases?: true;
}

const FAMILIES: Readonly<Record<string, GgufFamily>> = {
  llama: { type: 'llama', className: 'LlamaForCausalLM', permuted: true, biases: true },
  qwen2: { type: 'qwen2', className: 'Qwen2ForCausalLM' },
  qwen3: { type: 'qwen3', className: 'Qwen3ForCausalLM' },
};

/** Tensors that are rotary parameters. */
const ROTARY_FACTORS = 'rope_freqs.weight';

/** Roles of a layer's tensors by their names. */
const ROLES: Readonly<Record<string, keyof Names>> = {
  ...{ attn_norm: 'mixerNorm', attn_q: 'query', attn_k: 'key', attn_v: 'value', attn_output: 'output' },
  ...{ attn_q_norm: 'queryNorm', attn_k_norm: 'keyNorm', ffn_norm: 'innerNorm' },
  ...{ ffn_gate: 'gate', ffn_up: 'up', ffn_down: 'down' },
};

/**
 * Returns what `config.json` would say about the model in a GGUF file. Throws `Refused` for an architecture that is not
 * known, and for metadata that may change its numbers in a way that is not known.
 */
export function ggufConfig({ metadata, tensors }: GgufFile): Readonly<Record<string, unknown>> {
  const [architecture, family] = familyOf(metadata);
  const prefix = `${architecture}.`;
  const own = [...metadata].flatMap(([key, value]) =>
    key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : [],
  );
  const keys = new ConfigKeys(Object.fromEntries(own), {}, prefix, 'its metadata');
  const [layers, hidden] = [keys.size('block_count'), keys.size('embedding_length')];
  const heads = keys.size('attention.head_count');
  const headSize = keys.size('attention.key_length', hidden / heads);
  const rotated = keys.size('rope.dimension_count', headSize);
  const vocabulary = tensors.get('token_embd.weight')?.dims[0];
  if (vocabulary === undefined) throw unusable('it has no tensor "token_embd.weight"');
  keys.only({
    'attention.value_length': [headSize],
    'attention.causal': [true],
    expert_count: [0],
    expert_used_count: [0],
  });
  keys.ignore(['vocab_size', 'tensor_data_layout', 'rope.scaling.finetuned']);
  const context = keys.size('context_length');
  const has = (name: string) => tensors.has(`blk.0.${name}.bias`);
  const config = {
    model_type: family.type,
    architectures: [family.className],
    vocab_size: vocabulary,
    hidden_size: hidden,
    intermediate_size: keys.size('feed_forward_length'),
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keys.size('attention.head_count_kv', heads),
    head_dim: headSize,
    max_position_embeddings: context,
    rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
    hidden_act: 'silu',
    tie_word_embeddings: !tensors.has('output.weight'),
    ...(family.biases ? { attention_bias: has('attn_q'), mlp_bias: has('ffn_up') } : {}),
    rope_theta: keys.number('rope.freq_base', 1e4),
    ...(rotated === headSize ? {} : { partial_rotary_factor: rotated / headSize }),
    ...rotaryScaling(keys, tensors, context),
    ...tokenIds(metadata, vocabulary),
  };
  keys.end();
  return config;
}

function familyOf(metadata: GgufFile['metadata']): [architecture: string, family: GgufFamily] {
  const architecture = metadata.get('general.architecture');
  const family = typeof architecture === 'string' && Object.hasOwn(FAMILIES, architecture) && FAMILIES[architecture];
  if (typeof architecture !== 'string' || !family) {
    const known = Object.keys(FAMILIES).join(', ');
    throw new Refused(
      `its metadata says general.architecture: ${JSON.stringify(architecture)?.slice(0, 80)}, for which GGUF files are not read; those of ${known} are`,
    );
  }
  return [architecture, family];
}

function rotaryScaling(keys: ConfigKeys, tensors: WeightSource, context: number): object {
  const type = keys.text('rope.scaling.type', 'none');
  const stored = tensors.get(ROTARY_FACTORS);
  if (stored) {
    // Factors of the frequencies, as Llama 3 has them. They are a LongRoPE whose factors are the same for all lengths.
    if (type !== 'none') throw keys.refusal('rope.scaling.type', `beside the tensor ${ROTARY_FACTORS}`);
    const factors = [...readFloats(floatTensor(stored))];
    const same = { short_factor: factors, long_factor: factors, attention_factor: 1 };
    return { rope_scaling: { rope_type: 'longrope', ...same, original_max_position_embeddings: context } };
  }
  if (type === 'none') return {};
  const first = keys.size('rope.scaling.original_context_length', null);
  return {
    rope_scaling: {
      rope_type: type,
      factor: keys.number('rope.scaling.factor'),
      ...(first === null ? {} : { original_max_position_embeddings: first }),
    },
  };
}

/** Texts of tokens that end an answer, whatever the metadata says about them, as llama.cpp treats them. */
const ENDS: ReadonlySet<unknown> = new Set([
  ...['<|eot_id|>', '<|im_end|>', '<|end|>', '<|return|>', '<|call|>', '<|endoftext|>', '<|eom_id|>', '<end_of_turn>'],
  ...['<|end_of_text|>', '<|eot|>', '</s>', '<EOT>', '<eos>'],
]);
/** Kinds of tokens that are not text. */
const CONTROL = 3;

function tokenIds(metadata: GgufFile['metadata'], vocabulary: number): object {
  // Files state an id outside of the vocabulary for a token that they do not have.
  const id = (name: string): number | undefined => {
    const value = metadata.get(`tokenizer.ggml.${name}_token_id`);
    return Number.isInteger(value) && Number(value) >= 0 && Number(value) < vocabulary ? Number(value) : undefined;
  };
  const [tokens, types] = ['tokens', 'token_type'].map((name) => metadata.get(`tokenizer.ggml.${name}`));
  if (Array.isArray(tokens) && tokens.length > vocabulary) {
    throw unusable(`it has ${tokens.length} tokens, and embeddings of ${vocabulary}`);
  }
  const known = Array.isArray(tokens) && Array.isArray(types) ? tokens : [];
  // A cast: the condition above has checked it.
  const named = known.flatMap((token, index) =>
    (types as readonly unknown[])[index] === CONTROL && ENDS.has(token) ? [index] : [],
  );
  const ends = new Set([id('eos'), id('eot'), id('eom'), ...named].filter((end) => end !== undefined));
  return { eos_token_id: [...ends], ...(id('bos') === undefined ? {} : { bos_token_id: id('bos') }) };
}

/**
 * Returns the weights of a GGUF file with the names and the order of rows that transformers has. Their blocks stay as
 * they are.
 */
export function ggufWeights(gguf: GgufFile): WeightSource {
  const [, family] = familyOf(gguf.metadata);
  const { names, layers } = readArchitecture(ggufConfig(gguf), 0);
  const weights = new Map<string, StoredTensor>();
  for (const [name, stored] of gguf.tensors) {
    if (name === ROTARY_FACTORS) continue;
    const [, layer, role = '', kind = ''] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? [];
    const own = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
    const path =
      (Object.hasOwn(TOP, name) ? TOP[name]?.(names) : undefined) ??
      (own && `model.layers.${layer}.${names[own]}.${kind}`);
    if (path === undefined) throw unusable(`it has the tensor "${name}", which is not known here`);
    const mixer = layers[Number(layer)]?.mixer;
    const moved =
      family.permuted && mixer?.kind === 'attention' && (role === 'attn_q' || role === 'attn_k')
        ? inHalves(stored, role === 'attn_q' ? mixer.heads : mixer.kvHeads, mixer.headSize)
        : stored;
    weights.set(path, { ...moved, name: path });
  }
  return weights;
}

const TOP: Readonly<Record<string, (names: Names) => string>> = {
  'token_embd.weight': ({ embedding }) => `model.${embedding}.weight`,
  'output_norm.weight': ({ finalNorm }) => `model.${finalNorm}.weight`,
  'output.weight': () => 'lm_head.weight',
};

/** Returns the rows of queries or keys in transformers' order: two halves of a head, instead of pairs side by side. */
function inHalves(stored: StoredTensor, heads: number, headSize: number): StoredTensor {
  const rows = heads * headSize;
  if (stored.dims[0] !== rows) throw unusable(`the tensor "${stored.name}" has not ${rows} rows`);
  const half = headSize / 2;
  const order = Array.from({ length: rows }, (_, row) => {
    const place = row % headSize;
    return row - place + (place < half ? 2 * place : 2 * (place - half) + 1);
  });
  return rowsOf(stored, order);
}

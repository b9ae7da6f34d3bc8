import {
  ACTIVATIONS,
  type Architecture,
  type Attention,
  type Experts,
  type Layer,
  NAMES,
  type Names,
} from './architecture.ts';
import { ConfigKeys, Refused } from './config-keys.ts';
import { type RotaryKind, readRotary, rotaryParameters, rotaryParametersOf } from './rotary.ts';

/** Describes a family by what differs from Llama. */
interface Family {
  /** Classes of transformers whose numbers these are. */
  classes: readonly string[];
  /** Values of the configuration class, which a configuration may leave out. */
  defaults: Readonly<Record<string, unknown>>;
  /** Values that these keys must have, if they are there. */
  only?: Readonly<Record<string, readonly unknown[]>>;
  /** Keys that the class ignores. */
  ignored?: readonly string[];
  names?: Partial<Names>;
  /** Reads what differs in the whole model. */
  model?: (config: ConfigKeys) => Partial<Architecture>;
  /** Names the matrices of attention that have biases: as `attention_bias` says, or those of the inputs. */
  biases?: 'configured' | 'inputs';
  /** Reads what differs in the attention of all layers. */
  attention?: (config: ConfigKeys) => Partial<Attention>;
  /** Kind of each layer (`layer_types`) if the configuration does not say it. Default: all have full attention. */
  kind?: (layer: number, config: ConfigKeys, window: number | null) => string;
  /** True if the class ignores `layer_types`, so that other kinds than those of `kind` would be wrong. */
  ignoresKinds?: boolean;
  /** Number of tokens that layers with a window see. Default: there are no windows. */
  window?: (config: ConfigKeys) => number | null;
  /** Reads what differs in the attention of a kind of layers. */
  attentionOf?: (kind: RotaryKind, config: ConfigKeys) => Partial<Attention>;
  /** Reads what differs in one layer, from the kinds of all. */
  layer?: (layer: Layer, index: number, kinds: readonly string[], config: ConfigKeys) => Layer;
  /** Layers without rotary positions. */
  unrotated?: (layer: number, config: ConfigKeys) => boolean;
  rotary?: {
    /** Base of the frequencies, if the configuration states none. */
    theta?: number;
    /** True if a part of each head can be rotated. */
    partial?: boolean;
    /** Names of LongRoPE in old configurations. */
    longRope?: readonly string[];
    /** Parameters that the family reads itself. */
    others?: readonly string[];
    /** For families whose kinds of layers differ: the key and the value of each base in old configurations. */
    kinds?: Readonly<Record<RotaryKind, [key: string, theta: number]>>;
  };
  /** Layers that mix tokens in another way than attention; null for attention. */
  mixer?: (kind: string, config: ConfigKeys) => Layer['mixer'] | null;
  /** Experts of a layer; null for none. */
  experts?: (layer: number, config: ConfigKeys) => Experts | null;
  /** Key of the epsilon of norms. Default: `rms_norm_eps`. */
  epsilonKey?: string;
  /** Width of the feed-forward part, where it is not a key's value. */
  inner?: (config: ConfigKeys) => number;
  /** True if `mlp_bias` gives the feed-forward part biases. */
  innerBias?: boolean;
  /** Keys of the width of the feed-forward part and of its activation. */
  innerKey?: string;
  activationKey?: string;
}

const SLIDING = 'sliding_attention';
const FULL = 'full_attention';
/** Other names of kinds of layers, as in older configurations. */
const OLD_KINDS: Readonly<Record<string, string>> = { attention: FULL };

const slidingWindow = (config: ConfigKeys): number | null => config.size('sliding_window', null);
const all = (_layer: number, _config: ConfigKeys, window: number | null): string => (window === null ? FULL : SLIDING);

/** Shape of the classes of Llama's size, which several others have copied. */
const LLAMA_SIZES = {
  ...{ hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32, vocab_size: 32000 },
  ...{ hidden_act: 'silu', max_position_embeddings: 2048, rms_norm_eps: 1e-6, tie_word_embeddings: false },
};
const LLAMA: Family = {
  classes: ['LlamaForCausalLM'],
  defaults: { ...LLAMA_SIZES, intermediate_size: 11008 },
  only: { rope_interleaved: [false] },
  ignored: ['is_llama_config'],
  biases: 'configured',
  innerBias: true,
};
const MISTRAL: Family = {
  classes: ['MistralForCausalLM', 'Mistral3ForConditionalGeneration'],
  defaults: {
    ...{ ...LLAMA_SIZES, intermediate_size: 14336, num_key_value_heads: 8, max_position_embeddings: 131_072 },
    sliding_window: 4096,
  },
  kind: all,
  ignoresKinds: true,
  window: slidingWindow,
};
const QWEN_SIZES = {
  ...{ ...LLAMA_SIZES, vocab_size: 151_936, intermediate_size: 22016, num_key_value_heads: 32 },
  ...{ max_position_embeddings: 32768, sliding_window: 4096, max_window_layers: 28 },
};
const QWEN2: Family = {
  classes: ['Qwen2ForCausalLM'],
  defaults: QWEN_SIZES,
  biases: 'inputs',
  window(config) {
    const window = config.size('sliding_window', null);
    return config.flag('use_sliding_window', false) ? window : null;
  },
  kind: (layer, config, window) => (window !== null && layer >= config.number('max_window_layers') ? SLIDING : FULL),
  ignored: ['max_window_layers'],
};
const GEMMA_SIZES = {
  ...{ hidden_size: 2304, intermediate_size: 9216, num_hidden_layers: 26, num_attention_heads: 8 },
  ...{ num_key_value_heads: 4, head_dim: 256, rms_norm_eps: 1e-6, query_pre_attn_scalar: 256, sliding_window: 4096 },
  ...{ tie_word_embeddings: true, hidden_activation: 'gelu_pytorch_tanh' },
};
const POST_NORMS = {
  mixerEndNorm: 'post_attention_layernorm',
  innerNorm: 'pre_feedforward_layernorm',
  innerEndNorm: 'post_feedforward_layernorm',
};
const GEMMA: Pick<Family, 'names' | 'model' | 'window' | 'activationKey'> = {
  activationKey: 'hidden_activation',
  names: POST_NORMS,
  model: (config) => ({
    normOffset: 1,
    scales: { embedding: Math.fround(Math.sqrt(config.size('hidden_size'))), residual: 1, logits: 1 },
    logitCap: config.number('final_logit_softcapping', null),
  }),
  window: slidingWindow,
};
const GEMMA2: Family = {
  ...GEMMA,
  classes: ['Gemma2ForCausalLM'],
  defaults: {
    ...{ ...GEMMA_SIZES, vocab_size: 256_000, max_position_embeddings: 8192 },
    ...{ final_logit_softcapping: 30, attn_logit_softcapping: 50 },
  },
  only: { use_bidirectional_attention: [false] },
  // `hidden_act` is there for other readers; the class reads `hidden_activation`.
  ignored: ['hidden_act', 'sliding_window_size'],
  biases: 'configured',
  attention: (config) => ({
    scale: config.number('query_pre_attn_scalar') ** -0.5,
    cap: config.number('attn_logit_softcapping', null),
  }),
  kind: (layer) => (layer % 2 === 0 ? SLIDING : FULL),
};
const GEMMA3: Family = {
  ...GEMMA,
  classes: ['Gemma3ForCausalLM', 'Gemma3ForConditionalGeneration'],
  defaults: { ...GEMMA_SIZES, vocab_size: 262_208, max_position_embeddings: 131_072, sliding_window_pattern: 6 },
  only: { use_bidirectional_attention: [false] },
  ignored: ['hidden_act', '_sliding_window_pattern'],
  biases: 'configured',
  attention: (config) => ({
    scale: config.number('query_pre_attn_scalar') ** -0.5,
    norm: 'head',
  }),
  kind: (layer, config) => ((layer + 1) % config.size('sliding_window_pattern') === 0 ? FULL : SLIDING),
  rotary: { kinds: { full_attention: ['rope_theta', 1e6], sliding_attention: ['rope_local_base_freq', 1e4] } },
};
const OLMO2: Family = {
  classes: ['Olmo2ForCausalLM'],
  defaults: { ...LLAMA_SIZES, vocab_size: 50304, intermediate_size: 11008, rms_norm_eps: 1e-5 },
  names: { ...POST_NORMS, mixerNorm: null, innerNorm: null },
  biases: 'configured',
  attention: () => ({ norm: 'row' }),
};
const GRANITE: Family = {
  classes: ['GraniteForCausalLM'],
  defaults: { ...LLAMA_SIZES, intermediate_size: 11008 },
  model: (config) => ({
    scales: {
      embedding: config.number('embedding_multiplier', 1),
      residual: config.number('residual_multiplier', 1),
      logits: 1 / config.number('logits_scaling', 1),
    },
  }),
  biases: 'configured',
  attention: (config) => ({ scale: config.number('attention_multiplier', 1) }),
  innerBias: true,
};

const MIXTURE_NAMES = { router: 'mlp.gate', gateUp: 'mlp.experts.gate_up_proj', down: 'mlp.experts.down_proj' };
const LFM2: Family = {
  classes: ['Lfm2ForCausalLM', 'Lfm2VlForConditionalGeneration'],
  defaults: {
    ...{ ...LLAMA_SIZES, vocab_size: 65536, hidden_size: 2560, intermediate_size: 12288, num_key_value_heads: 8 },
    ...{ max_position_embeddings: 128_000, norm_eps: 1e-5, tie_word_embeddings: true, conv_bias: false },
    ...{ conv_L_cache: 3, block_auto_adjust_ff_dim: true, block_ffn_dim_multiplier: 1, block_multiple_of: 256 },
  },
  only: { hidden_act: ['silu'], block_use_swiglu: [true], use_pos_enc: [true] },
  ignored: [
    ...['block_dim', 'block_mlp_init_scale', 'block_norm_eps', 'block_out_init_scale', 'block_use_xavier_init'],
    ...['conv_dim', 'conv_dim_out', 'conv_use_xavier_init', 'num_heads', 'rms_norm_eps', 'full_attn_idxs'],
  ],
  epsilonKey: 'norm_eps',
  names: {
    ...{ finalNorm: 'embedding_norm', mixerNorm: 'operator_norm', innerNorm: 'ffn_norm' },
    ...{ queryNorm: 'self_attn.q_layernorm', keyNorm: 'self_attn.k_layernorm', output: 'self_attn.out_proj' },
    ...{ gate: 'feed_forward.w1', up: 'feed_forward.w3', down: 'feed_forward.w2' },
  },
  model: (config) => ({ tied: config.flag('tie_embedding', config.flag('tie_word_embeddings', true)) }),
  attention: () => ({ norm: 'head' }),
  kind(layer, config) {
    const full = config.value('full_attn_idxs');
    return Array.isArray(full) && !full.includes(layer) ? 'conv' : FULL;
  },
  mixer(kind, config) {
    // Read for every layer: a model without a convolution may state them, too.
    const sizes = { width: config.size('conv_L_cache'), biased: config.flag('conv_bias', false) };
    return kind === 'conv' ? { kind: 'convolution', ...sizes } : null;
  },
  inner(config) {
    const stated: number = config.size('block_ff_dim', null) ?? config.size('intermediate_size');
    const multiplier = config.number('block_ffn_dim_multiplier', null);
    const multiple = config.size('block_multiple_of');
    if (!config.flag('block_auto_adjust_ff_dim', true)) return stated;
    const adjusted = Math.floor((2 * stated) / 3);
    return multiplier === null ? adjusted : multiple * Math.ceil(Math.floor(multiplier * adjusted) / multiple);
  },
  rotary: { theta: 1e6 },
};

const GEMMA4: Family = {
  ...GEMMA,
  classes: ['Gemma4ForCausalLM', 'Gemma4ForConditionalGeneration'],
  defaults: {
    ...{ ...GEMMA_SIZES, vocab_size: 262_144, num_hidden_layers: 30, max_position_embeddings: 131_072 },
    ...{ sliding_window: 512, hidden_size_per_layer_input: 256, vocab_size_per_layer_input: 262_144 },
    rope_parameters: {
      sliding_attention: { rope_type: 'default', rope_theta: 1e4 },
      full_attention: { rope_type: 'proportional', partial_rotary_factor: 0.25, rope_theta: 1e6 },
    },
  },
  // Tokens of images see each other in both directions; text does not.
  only: { use_bidirectional_attention: ['vision'], enable_moe_block: [false] },
  ignored: ['num_experts', 'top_k_experts', 'moe_intermediate_size', 'query_pre_attn_scalar', 'hidden_act'],
  model(config) {
    const size = config.number('hidden_size_per_layer_input', 0);
    const vocab = config.size('vocab_size_per_layer_input', config.size('vocab_size'));
    if (size !== 0 && vocab < config.size('vocab_size')) throw config.refusal('vocab_size_per_layer_input');
    return {
      ...GEMMA.model?.(config),
      normOffset: 0,
      layerFactors: true,
      layerInputs: size === 0 ? null : { size, vocab },
    };
  },
  biases: 'configured',
  attention: () => ({ norm: 'head', scale: 1, valueNorm: true }),
  attentionOf(kind, config) {
    if (kind === SLIDING) return {};
    const keysAsValues = config.flag('attention_k_eq_v', false);
    const stated = perLayerConfig(config);
    if (stated) return { ...stated, keysAsValues };
    const kvHeads = keysAsValues ? config.size('num_global_key_value_heads', null) : null;
    return { headSize: config.size('global_head_dim', 512), ...(kvHeads === null ? {} : { kvHeads }), keysAsValues };
  },
  kind: (layer, config) => ((layer + 1) % 6 === 0 || layer + 1 === config.size('num_hidden_layers') ? FULL : SLIDING),
  layer(layer, index, kinds, config) {
    const first = kinds.length - config.number('num_kv_shared_layers', 0);
    const wide = config.flag('use_double_wide_mlp', false);
    if (kinds.at(-1) !== FULL) throw config.refusal('layer_types', 'whose last layer must have full attention');
    if (index < first || layer.mixer.kind !== 'attention') return layer;
    const sharedFrom = kinds.slice(0, first).lastIndexOf(kinds[index] ?? '');
    if (sharedFrom < 0) throw config.refusal('num_kv_shared_layers', 'and no earlier layer of the same kind');
    return { ...layer, mixer: { ...layer.mixer, sharedFrom }, inner: layer.inner * (wide ? 2 : 1) };
  },
  rotary: { kinds: { full_attention: ['rope_theta', 1e6], sliding_attention: ['rope_theta', 1e4] } },
};

/** Reads the sizes of full attention from `per_layer_config`, which must be the same for all such layers. */
function perLayerConfig(config: ConfigKeys): Partial<Attention> | null {
  const stated = config.value('per_layer_config');
  const kinds = config.value('layer_types');
  config.ignore(['global_head_dim', 'num_global_key_value_heads']);
  if (typeof stated !== 'object' || stated === null || !Array.isArray(kinds)) return null;
  const layers = Object.entries(stated);
  // Nothing is stated where full attention has the sizes of the others.
  if (layers.length === 0) return {};
  const full = kinds.flatMap((kind, layer) => (kind === FULL ? [layer] : []));
  const [first] = Object.values(stated);
  // transformers writes as many digits for each number of a layer: "05".
  const same = layers.every(
    ([layer, sizes]) => full.includes(Number(layer)) && JSON.stringify(sizes) === JSON.stringify(first),
  );
  if (!same || layers.length !== full.length) throw config.refusal('per_layer_config');
  const sizes = new ConfigKeys(typeof first === 'object' && first !== null ? first : {}, {}, 'per_layer_config.');
  const [headSize, kvHeads] = [sizes.size('head_dim', null), sizes.size('num_key_value_heads', null)];
  sizes.end();
  return { ...(headSize === null ? {} : { headSize }), ...(kvHeads === null ? {} : { kvHeads }) };
}

/** Families with other layers than attention, or with experts. */
const OTHERS: Readonly<Record<string, Family>> = {
  qwen3_5_text: {
    classes: ['Qwen3_5ForCausalLM', 'Qwen3_5ForConditionalGeneration'],
    defaults: {
      ...{ ...LLAMA_SIZES, vocab_size: 248_320, intermediate_size: 12288, num_attention_heads: 16 },
      ...{ num_key_value_heads: 4, max_position_embeddings: 32768, head_dim: 256, linear_conv_kernel_dim: 4 },
      ...{ linear_key_head_dim: 128, linear_value_head_dim: 128, linear_num_key_heads: 16 },
      ...{ linear_num_value_heads: 32, partial_rotary_factor: 0.25, full_attention_interval: 4 },
    },
    only: { hidden_act: ['silu'], attn_output_gate: [true], mamba_ssm_dtype: ['float32'] },
    ignored: ['mtp_num_hidden_layers', 'mtp_use_dedicated_embeddings', 'mlp_only_layers'],
    model: () => ({ normOffset: 1 }),
    biases: 'configured',
    attention: () => ({ norm: 'head', gated: true }),
    kind: (layer, config) => ((layer + 1) % config.size('full_attention_interval') === 0 ? FULL : 'linear_attention'),
    mixer(kind, config) {
      const sizes = {
        keyHeads: config.size('linear_num_key_heads'),
        valueHeads: config.size('linear_num_value_heads'),
        keySize: config.size('linear_key_head_dim'),
        valueSize: config.size('linear_value_head_dim'),
        width: config.size('linear_conv_kernel_dim'),
      };
      if (sizes.valueHeads % sizes.keyHeads !== 0)
        throw config.refusal('linear_num_value_heads', 'which its keys do not divide');
      return kind === 'linear_attention' ? { kind: 'delta', ...sizes } : null;
    },
    rotary: { partial: true },
  },
  qwen3_moe: {
    ...QWEN2,
    classes: ['Qwen3MoeForCausalLM'],
    defaults: {
      ...{ ...QWEN_SIZES, hidden_size: 2048, intermediate_size: 6144, num_hidden_layers: 24, num_key_value_heads: 4 },
      ...{ decoder_sparse_step: 1, moe_intermediate_size: 768, num_experts_per_tok: 8 },
    },
    only: { hidden_act: ['silu'], use_sliding_window: [false] },
    ignored: ['max_window_layers', 'sliding_window', 'num_local_experts'],
    window: () => null,
    biases: 'configured',
    attention: () => ({ norm: 'head' }),
    experts(layer, config) {
      const dense = config.value('mlp_only_layers');
      const step = config.size('decoder_sparse_step');
      const experts: Experts = {
        count: config.size('num_experts', null) ?? config.size('num_local_experts', 128),
        used: config.size('num_experts_per_tok'),
        inner: config.size('moe_intermediate_size'),
        routing: { kind: 'softmax', normalised: config.flag('norm_topk_prob', false), scale: 1, bias: null },
        ...{ form: null, biased: false, layout: 'stacked' },
        names: {
          ...MIXTURE_NAMES,
          ...{ single: 'mlp.experts', singleGate: 'gate_proj', singleUp: 'up_proj', singleDown: 'down_proj' },
        },
      };
      return (layer + 1) % step !== 0 || (Array.isArray(dense) && dense.includes(layer)) ? null : experts;
    },
  },
  gpt_oss: {
    classes: ['GptOssForCausalLM'],
    defaults: {
      ...{ ...LLAMA_SIZES, vocab_size: 201_088, hidden_size: 2880, intermediate_size: 2880, num_hidden_layers: 36 },
      ...{ num_attention_heads: 64, num_key_value_heads: 8, head_dim: 64, sliding_window: 128 },
      ...{ max_position_embeddings: 131_072, rms_norm_eps: 1e-5, num_local_experts: 128, num_experts_per_tok: 4 },
      ...{ attention_bias: true, swiglu_alpha: 1.702, swiglu_limit: 7 },
      rope_parameters: {
        ...{ rope_type: 'yarn', factor: 32, beta_fast: 32, beta_slow: 1, truncate: false },
        original_max_position_embeddings: 4096,
      },
    },
    only: { hidden_act: ['silu'] },
    // In MXFP4 (`checkpoint/mxfp4.ts`), or else refused.
    ignored: ['initial_context_length', 'experts_per_token', 'quantization_config'],
    biases: 'configured',
    attention: () => ({ sinks: true }),
    window: slidingWindow,
    kind: (layer) => (layer % 2 === 0 ? SLIDING : FULL),
    experts: (_layer, config) => ({
      count: config.size('num_local_experts'),
      used: config.size('num_experts_per_tok'),
      inner: config.size('intermediate_size'),
      routing: { kind: 'softmax', normalised: true, scale: 1, bias: null },
      form: { alpha: config.number('swiglu_alpha'), limit: config.number('swiglu_limit') },
      ...{ biased: true, layout: 'transposed' },
      names: { ...MIXTURE_NAMES, router: 'mlp.router', single: '', singleGate: '', singleUp: '', singleDown: '' },
    }),
    rotary: { theta: 150_000 },
  },
  gemma4_text: GEMMA4,
  gemma4_unified_text: {
    ...GEMMA4,
    classes: ['Gemma4UnifiedForCausalLM', 'Gemma4UnifiedForConditionalGeneration'],
    defaults: {
      ...{ ...GEMMA4.defaults, sliding_window: 1024, max_position_embeddings: 262_144 },
      hidden_size_per_layer_input: 0,
    },
  },
  lfm2: LFM2,
  lfm2_moe: {
    ...LFM2,
    classes: ['Lfm2MoeForCausalLM'],
    defaults: {
      ...{ ...LLAMA_SIZES, vocab_size: 65536, hidden_size: 2048, intermediate_size: 7168, num_key_value_heads: 8 },
      ...{ max_position_embeddings: 128_000, norm_eps: 1e-5, tie_word_embeddings: true, conv_L_cache: 3 },
      ...{ moe_intermediate_size: 1792, num_dense_layers: 2, num_experts_per_tok: 4, num_experts: 32 },
    },
    kind: () => FULL,
    inner: (config) => config.size('intermediate_size'),
    experts(layer, config) {
      const experts: Experts = {
        count: config.size('num_experts'),
        used: config.size('num_experts_per_tok'),
        inner: config.size('moe_intermediate_size'),
        routing: {
          kind: 'sigmoid',
          normalised: config.flag('norm_topk_prob', true),
          scale: config.number('routed_scaling_factor', 1),
          bias: config.flag('use_expert_bias', true) ? 'feed_forward.expert_bias' : null,
        },
        ...{ form: null, biased: false, layout: 'stacked' },
        names: {
          router: 'feed_forward.gate',
          ...{ gateUp: 'feed_forward.experts.gate_up_proj', down: 'feed_forward.experts.down_proj' },
          ...{ single: 'feed_forward.experts', singleGate: 'w1', singleUp: 'w3', singleDown: 'w2' },
        },
      };
      return layer < config.number('num_dense_layers') ? null : experts;
    },
  },
};

/** The families whose graphs are written here, by `model_type`. */
const FAMILIES: Readonly<Record<string, Family>> = {
  ...OTHERS,
  llama: LLAMA,
  mistral: MISTRAL,
  ministral: { ...MISTRAL, classes: ['MinistralForCausalLM'], ignoresKinds: false },
  ministral3: {
    ...MISTRAL,
    classes: ['Ministral3ForCausalLM', 'Mistral3ForConditionalGeneration'],
    defaults: {
      ...{ ...MISTRAL.defaults, vocab_size: 131_072, num_hidden_layers: 34, head_dim: 128, sliding_window: null },
      ...{ max_position_embeddings: 262_144, rms_norm_eps: 1e-5 },
      rope_parameters: {
        ...{ rope_type: 'yarn', rope_theta: 1e6, factor: 16, original_max_position_embeddings: 16384 },
        ...{ beta_fast: 32, beta_slow: 1, mscale: 1, mscale_all_dim: 1, llama_4_scaling_beta: 0.1 },
      },
    },
    attention: (config) => ({ growth: growthOf(config) }),
    rotary: { others: ['llama_4_scaling_beta'] },
  },
  qwen2: QWEN2,
  qwen3: {
    ...QWEN2,
    classes: ['Qwen3ForCausalLM'],
    defaults: { ...QWEN_SIZES, head_dim: 128 },
    biases: 'configured',
    attention: () => ({ norm: 'head' }),
  },
  smollm3: {
    ...LLAMA,
    classes: ['SmolLM3ForCausalLM'],
    defaults: {
      ...{ ...LLAMA_SIZES, vocab_size: 128_256, hidden_size: 2048, intermediate_size: 11008, num_hidden_layers: 36 },
      ...{ num_attention_heads: 16, num_key_value_heads: 4, max_position_embeddings: 32768, tie_word_embeddings: true },
      no_rope_layer_interval: 4,
    },
    only: { use_sliding_window: [false], sliding_window: [] },
    ignored: ['max_window_layers'],
    unrotated(layer, config) {
      const rotated = config.list<number>('no_rope_layers', 'number', config.size('num_hidden_layers'));
      const interval = config.size('no_rope_layer_interval');
      return rotated ? rotated[layer] === 0 : (layer + 1) % interval === 0;
    },
    rotary: { theta: 2e6 },
  },
  phi3: {
    ...MISTRAL,
    classes: ['Phi3ForCausalLM'],
    defaults: {
      ...{ ...LLAMA_SIZES, vocab_size: 32064, hidden_size: 3072, intermediate_size: 8192, rms_norm_eps: 1e-5 },
      ...{ max_position_embeddings: 4096, original_max_position_embeddings: 4096 },
    },
    only: { lm_head_bias: [false], full_attn_mod: [1], interpolate_factor: [1] },
    names: { joint: 'self_attn.qkv_proj', gateUp: 'mlp.gate_up_proj' },
    // Old names of LongRoPE.
    rotary: { partial: true, longRope: ['su', 'yarn'] },
  },
  gemma2: GEMMA2,
  gemma3_text: GEMMA3,
  granite: GRANITE,
  granitemoehybrid: {
    ...GRANITE,
    classes: ['GraniteMoeHybridForCausalLM'],
    defaults: {
      ...{ ...LLAMA_SIZES, intermediate_size: 11008, shared_intermediate_size: 1024, num_local_experts: 8 },
    },
    only: { num_local_experts: [0], normalization_function: ['rmsnorm'], position_embedding_type: ['rope', 'nope'] },
    ignored: [
      ...[
        'intermediate_size',
        'num_experts_per_tok',
        'mamba_n_heads',
        'mamba_n_groups',
        'mamba_d_state',
        'mamba_d_head',
      ],
      ...['mamba_d_conv', 'mamba_expand', 'mamba_chunk_size', 'mamba_conv_bias', 'mamba_proj_bias', 'time_step_limit'],
      ...['time_step_min', 'time_step_max', 'time_step_floor', 'shared_intermediate_size'],
    ],
    names: { gateUp: 'shared_mlp.input_linear', down: 'shared_mlp.output_linear' },
    unrotated: (_layer, config) => config.text('position_embedding_type', null) !== 'rope',
    kind: () => 'mamba',
    innerBias: false,
    innerKey: 'shared_intermediate_size',
  },
  olmo2: OLMO2,
  olmo3: {
    ...OLMO2,
    classes: ['Olmo3ForCausalLM'],
    defaults: { ...OLMO2.defaults, sliding_window: 4096 },
    window: slidingWindow,
    kind: (layer) => ((layer + 1) % 4 === 0 ? FULL : SLIDING),
    rotary: { kinds: { full_attention: ['rope_theta', 5e5], sliding_attention: ['rope_theta', 5e5] } },
  },
};

/** Models with images or audio, by `model_type`, whose text part is one of the families. */
const WRAPPERS: Readonly<Record<string, { tied: boolean; uncapped?: true }>> = {
  // Its class ignores `final_logit_softcapping`.
  gemma3: { tied: true, uncapped: true },
  mistral3: { tied: true },
  qwen3_5: { tied: false },
  lfm2_vl: { tied: true },
  gemma4: { tied: true },
  gemma4_unified: { tied: true },
};
/** Keys of such a model beside those of its text part. */
const WRAPPER_KEYS: readonly string[] = [
  ...['text_config', 'vision_config', 'audio_config', 'tie_word_embeddings', 'spatial_merge_size', 'initializer_range'],
  ...['image_token_id', 'image_token_index', 'boi_token_index', 'eoi_token_index', 'mm_tokens_per_image'],
  ...['video_token_id', 'vision_start_token_id', 'vision_end_token_id', 'projector_hidden_size', 'projector_bias'],
  ...['audio_token_id', 'boa_token_id', 'boi_token_id', 'eoa_token_id', 'eoa_token_index', 'eoi_token_id'],
  ...['vision_soft_tokens_per_image', 'eoi_token_index', 'audio_ms_per_token', 'use_bidirectional_attention'],
  ...['projector_use_layernorm', 'downsample_factor', 'tie_embedding'],
  ...['projector_hidden_act', 'vision_feature_layer', 'multimodal_projector_bias', 'quantization_config'],
];

/**
 * Reads what a decoder computes from its parsed `config.json`. Throws `Refused` for a family that is not known, and for
 * a key that may change its numbers in a way that is not known.
 *
 * @param maxPromptLen longest prompt, by which LongRoPE's frequencies are chosen
 * @param ownHead true if another layer takes the place of the output head, so that the model's class may be any
 */
export function readArchitecture(config: unknown, maxPromptLen: number, ownHead = false): Architecture {
  if (typeof config !== 'object' || config === null) throw new Refused('config.json is no object');
  const whole = new ConfigKeys(config);
  const type = whole.text('model_type');
  const inner = whole.value('text_config');
  const isWrapper = Object.hasOwn(WRAPPERS, type) && typeof inner === 'object';
  // A cast: the line before has checked it.
  const values = isWrapper ? (inner as object) : config;
  const family = isWrapper ? new ConfigKeys(values).text('model_type') : type;
  const row = Object.hasOwn(FAMILIES, family) ? FAMILIES[family] : undefined;
  if (!row) {
    const known = Object.keys(FAMILIES).join(', ');
    throw new Refused(
      `config.json says model_type: "${family}", for which no graph is written; the families are ${known}`,
    );
  }
  refuseQuantised(whole, family);
  const classes = whole.value('architectures');
  const named: unknown = Array.isArray(classes) ? classes[0] : classes;
  if (named !== undefined && !ownHead && !row.classes.some((known) => known === named)) {
    throw new Refused(
      `config.json says architectures: ${JSON.stringify(named)}, where ${row.classes.join(' or ')} is known`,
    );
  }
  if (!isWrapper) return read(family, row, new ConfigKeys(values, row.defaults), maxPromptLen);
  whole.ignore(WRAPPER_KEYS);
  whole.end();
  const text = new ConfigKeys(values, row.defaults);
  const wrapper = WRAPPERS[type];
  const tied = whole.flag('tie_word_embeddings', wrapper?.tied ?? false);
  const architecture = read(family, row, text, maxPromptLen);
  return {
    ...architecture,
    tied: tied || architecture.tied,
    ...(wrapper?.uncapped ? { logitCap: null } : {}),
  };
}

/**
 * Returns why no graph can be written for a parsed `config.json`, and what to use instead; null if one can.
 *
 * @param ownHead as in `readArchitecture`
 */
export function architectureRefusal(config: unknown, ownHead = false): string | null {
  try {
    readArchitecture(config, 0, ownHead);
    return null;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

/** Throws for weights that are quantised in a way that is not read, by its name. */
function refuseQuantised(config: ConfigKeys, family: string): void {
  for (const key of ['quantization_config', 'compression_config']) {
    const value = config.value(key);
    if (value === undefined) continue;
    const method =
      typeof value === 'object' && value !== null && 'quant_method' in value ? String(value.quant_method) : key;
    if (method === 'mxfp4' && family === 'gpt_oss') continue;
    throw new Refused(
      `config.json says that its weights are quantised (${method.slice(0, 40)}), which is not read here; use the copy of this model in bfloat16`,
    );
  }
}

function read(family: string, row: Family, config: ConfigKeys, maxPromptLen: number): Architecture {
  const count = config.size('num_hidden_layers');
  if (count > 1024) throw config.refusal('num_hidden_layers', 'which is more than 1024');
  const unless = (read: boolean | undefined) => (read ? [true, false] : [false]);
  config.only({
    ...{ attention_bias: unless(row.biases === 'configured'), mlp_bias: unless(row.innerBias) },
    ...{ is_encoder_decoder: [false], add_cross_attention: [false], ...row.only },
  });
  config.ignore(row.ignored ?? []);
  const hidden = config.size('hidden_size');
  const context = Math.min(config.size('max_position_embeddings'), 1 << 20);
  const activationKey = row.activationKey ?? 'hidden_act';
  const activation = config.text(activationKey);
  if (!isActivation(activation)) throw config.refusal(activationKey, 'which is not known');
  const window = row.window?.(config) ?? null;
  const usual = Array.from({ length: count }, (_, layer) => row.kind?.(layer, config, window) ?? FULL);
  const kinds = config.list<string>('layer_types', 'string', count) ?? usual;
  if (row.ignoresKinds && kinds.some((kind, layer) => kind !== usual[layer])) throw config.refusal('layer_types');
  const heads = config.size('num_attention_heads');
  const headSize = config.size('head_dim', null) ?? hidden / heads;
  const kvHeads = config.size('num_key_value_heads', heads);
  if (!Number.isInteger(headSize) || heads % kvHeads !== 0) {
    throw new Refused(
      `config.json says ${heads} heads for ${hidden} elements and ${kvHeads} heads of keys, which do not divide`,
    );
  }
  if (headSize % 8 !== 0) {
    throw new Refused(`config.json describes heads of ${headSize} elements, and only multiples of 8 are computed here`);
  }
  const base: Attention = {
    kind: 'attention',
    ...{ heads, kvHeads, headSize, scale: headSize ** -0.5, cap: null, window: null, rotary: null, norm: null },
    biases: {
      inputs: row.biases === 'inputs' || (row.biases === 'configured' && config.flag('attention_bias', false)),
      output: row.biases === 'configured' && config.flag('attention_bias', false),
    },
    ...{ growth: null, gated: false, sinks: false, valueNorm: false, keysAsValues: false, sharedFrom: null },
    ...row.attention?.(config),
  };
  const ofKind = (kind: RotaryKind): Attention => ({ ...base, ...row.attentionOf?.(kind, config) });
  const rotaryFor = rotaryReader(row, config, (kind) => ({
    ...{ headSize: ofKind(kind).headSize, context, maxPromptLen },
  }));
  const inner: number = row.inner?.(config) ?? config.size(row.innerKey ?? 'intermediate_size');
  const innerBias = config.flag('mlp_bias', false);
  const layers = kinds.map((named, index): Layer => {
    const kind = OLD_KINDS[named] ?? named;
    const rest = { inner, innerBias, experts: row.experts?.(index, config) ?? null };
    const other = row.mixer?.(kind, config);
    if (other) return { mixer: other, ...rest };
    if (kind !== FULL && kind !== SLIDING) throw config.refusal('layer_types', `whose "${named}" is not computed here`);
    if (kind === SLIDING && window === null) throw config.refusal('layer_types', 'and no sliding_window');
    const rotary = row.unrotated?.(index, config) ? null : rotaryFor(kind);
    const seen = kind === SLIDING && window !== null && window < context ? window : null;
    const layer = { mixer: { ...ofKind(kind), window: seen, rotary }, ...rest };
    return row.layer?.(layer, index, kinds, config) ?? layer;
  });
  const architecture: Architecture = {
    family,
    ...{
      vocab: config.size('vocab_size'),
      hidden,
      epsilon: config.number(row.epsilonKey ?? 'rms_norm_eps'),
      normOffset: 0,
      activation: ACTIVATIONS[activation],
    },
    ...{
      scales: { embedding: 1, residual: 1, logits: 1 },
      logitCap: null,
      tied: config.flag('tie_word_embeddings', false),
    },
    ...{ layerInputs: null, layerFactors: false },
    ...row.model?.(config),
    ...{ layers, names: { ...NAMES, ...row.names } },
    context: Math.min(
      context,
      ...layers.map(({ mixer }) => (mixer.kind === 'attention' && mixer.rotary?.until) || context),
    ),
  };
  config.end();
  return architecture;
}

function isActivation(name: string): name is keyof typeof ACTIVATIONS {
  return Object.hasOwn(ACTIVATIONS, name);
}

/** Returns a function that gives the rotary positions of a kind of layers; layers of a kind share them. */
function rotaryReader(
  row: Family,
  config: ConfigKeys,
  sizesOf: (kind: RotaryKind) => { headSize: number; context: number; maxPromptLen: number },
): (kind: RotaryKind) => Attention['rotary'] {
  const { theta = 1e4, partial = false, longRope = [], others = [], kinds } = row.rotary ?? {};
  const options = { partial, longRope, others };
  if (!kinds) {
    const rotary = readRotary(rotaryParameters(config), { ...options, ...sizesOf(FULL), theta, nested: false });
    return () => rotary;
  }
  const read = (kind: RotaryKind) => {
    const [key, base] = kinds[kind];
    return readRotary(rotaryParametersOf(config, kind, key), {
      ...options,
      ...sizesOf(kind),
      theta: base,
      nested: true,
    });
  };
  const both = { [FULL]: read(FULL), [SLIDING]: read(SLIDING) };
  return (kind) => both[kind];
}

/** Reads by how much queries of later positions grow (Ministral 3). */
function growthOf(config: ConfigKeys): Attention['growth'] {
  const parameters = rotaryParameters(config);
  const beta = parameters.number('llama_4_scaling_beta', 0);
  const first = parameters.size('original_max_position_embeddings', config.size('max_position_embeddings'));
  return beta === 0 ? null : { beta, first };
}

import { describe, expect, test } from 'vitest';
import { architectureRefusal, readArchitecture } from './families.ts';

const SIZES = { hidden_size: 64, intermediate_size: 96, num_hidden_layers: 4, num_attention_heads: 4, vocab_size: 100 };
const LLAMA = {
  architectures: ['LlamaForCausalLM'],
  ...{ ...SIZES, model_type: 'llama', max_position_embeddings: 131_072, num_key_value_heads: 2 },
  ...{ hidden_act: 'silu', rms_norm_eps: 1e-5, rope_theta: 5e5, attention_bias: false, mlp_bias: false },
  ...{ torch_dtype: 'bfloat16', transformers_version: '4.45.0', use_cache: true, bos_token_id: 1, pretraining_tp: 1 },
};
const QWEN3 = { ...LLAMA, architectures: ['Qwen3ForCausalLM'], model_type: 'qwen3', head_dim: 32, mlp_bias: undefined };
const GEMMA3 = {
  ...{ ...SIZES, model_type: 'gemma3_text', sliding_window: 1024, num_hidden_layers: 7 },
  ...{ rope_scaling: { factor: 8, rope_type: 'linear' } },
};
const LFM2 = { model_type: 'lfm2', num_hidden_layers: 2, conv_L_cache: 3, conv_bias: false };
const OLMO3 = {
  ...LLAMA,
  architectures: ['Olmo3ForCausalLM'],
  model_type: 'olmo3',
  sliding_window: 64,
  mlp_bias: null,
};

describe('configurations as they are published', () => {
  test.each<[string, object, object]>([
    ['Llama 3.2', { ...LLAMA, rope_scaling: LLAMA3_SCALING(), tie_word_embeddings: true }, { tied: true }],
    ['SmolLM2', { ...LLAMA, is_llama_config: true, rope_interleaved: false, 'transformers.js_config': {} }, {}],
    ['Phi-4-mini', PHI4(), { context: 4096, names: { joint: 'self_attn.qkv_proj' } }],
    ['Gemma 3 with class defaults', GEMMA3, { normOffset: 1, tied: true, vocab: 100 }],
    [
      'Gemma 3 with images',
      { model_type: 'gemma3', text_config: GEMMA3, vision_config: {}, mm_tokens_per_image: 256 },
      {},
    ],
    [
      'Gemma 3 with images and a cap, which its class ignores',
      { model_type: 'gemma3', text_config: { ...GEMMA3, final_logit_softcapping: 20 } },
      { logitCap: null },
    ],
    [
      'Qwen3 with all that transformers 4 knows of a text model',
      {
        ...{ ...QWEN3, is_encoder_decoder: false, add_cross_attention: false, is_decoder: false, pruned_heads: {} },
        ...{ num_beam_groups: 1, num_return_sequences: 1, diversity_penalty: 0, early_stopping: false, typical_p: 1 },
        ...{ encoder_no_repeat_ngram_size: 0, remove_invalid_values: false },
        ...{ tf_legacy_loss: false, use_bfloat16: false },
      },
      {},
    ],
    ['LFM2 without a convolution', { ...LFM2, layer_types: Array(2).fill('full_attention') }, {}],
    ['Qwen3 with what older transformers save', { ...QWEN3, max_window_layers: 28, use_sliding_window: false }, {}],
  ])('%s', (_, config, expected) => {
    expect(readArchitecture(config, 512)).toMatchObject(expected);
  });
});

test('a base of GPT-OSS that is stated beside no scaling is that of the scaling of its class', () => {
  const config = { model_type: 'gpt_oss', architectures: ['GptOssForCausalLM'], num_hidden_layers: 1 };
  const mixer = readArchitecture({ ...config, rope_theta: 1e4, rope_scaling: null }, 64).layers[0]?.mixer;
  expect(mixer?.kind === 'attention' && mixer.rotary?.inverse[1]).toBeCloseTo(1e4 ** (-2 / 64), 6);
});

describe('sizes of the full attention of Gemma 4', () => {
  const kinds = Array.from({ length: 12 }, (_, layer) => (layer % 6 === 5 ? 'full_attention' : 'sliding_attention'));
  const gemma4 = {
    ...{ model_type: 'gemma4_text', architectures: ['Gemma4ForCausalLM'], num_hidden_layers: 12 },
    ...{ layer_types: kinds, head_dim: 64, num_key_value_heads: 2 },
  };
  const sizes = (per_layer_config: object) =>
    [0, 11].map((layer) => {
      const mixer = readArchitecture({ ...gemma4, per_layer_config }, 64).layers[layer]?.mixer;
      return mixer?.kind === 'attention' && [mixer.headSize, mixer.kvHeads];
    });

  test('are stated by numbers with as many digits for each layer', () => {
    const own = { head_dim: 128, num_key_value_heads: 1 };
    expect(sizes({ '05': own, '11': own })).toEqual([
      [64, 2],
      [128, 1],
    ]);
  });

  test('are those of other layers if nothing is stated', () => {
    expect(sizes({})).toEqual([
      [64, 2],
      [64, 2],
    ]);
  });

  test('are refused if only some layers have them', () => {
    expect(() => sizes({ '05': { head_dim: 128 } })).toThrow(/per_layer_config/);
  });
});

function LLAMA3_SCALING() {
  const lengths = { low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 };
  return { rope_type: 'llama3', factor: 32, ...lengths };
}

function PHI4() {
  return {
    ...{
      ...SIZES,
      model_type: 'phi3',
      architectures: ['Phi3ForCausalLM'],
      auto_map: {},
      embd_pdrop: 0,
      resid_pdrop: 0,
    },
    ...{ attention_bias: false, mlp_bias: false, lm_head_bias: false, full_attn_mod: 1, interpolate_factor: 1 },
    ...{ max_position_embeddings: 131_072, original_max_position_embeddings: 4096, partial_rotary_factor: 0.5 },
    ...{ rope_scaling: { type: 'longrope', short_factor: [1, 1, 1, 1], long_factor: [1, 2, 3, 4] }, head_dim: 16 },
    ...{ sliding_window: 262_144, tie_word_embeddings: true, rms_norm_eps: 1e-5 },
  };
}

describe('kinds of layers', () => {
  const windows = (config: object) =>
    readArchitecture(config, 64).layers.map(({ mixer }) => mixer.kind === 'attention' && mixer.window);
  test.each<[string, object, (number | null)[]]>([
    ['Gemma 3 has every sixth full', GEMMA3, [1024, 1024, 1024, 1024, 1024, null, 1024]],
    ['OLMo 3 has every fourth full', OLMO3, [64, 64, 64, null]],
    ['Qwen has windows after some layers', qwen2(), [null, 16, 16, 16]],
    ['a window as long as the context is none', { ...OLMO3, sliding_window: 1 << 20 }, [null, null, null, null]],
  ])('%s', (_, config, expected) => {
    expect(windows(config)).toEqual(expected);
  });

  test('the window of Qwen that is not used is none', () => {
    expect(windows({ ...qwen2(), use_sliding_window: false })).toEqual([null, null, null, null]);
  });

  function qwen2() {
    const window = { use_sliding_window: true, sliding_window: 16, max_window_layers: 1 };
    return { ...LLAMA, architectures: ['Qwen2ForCausalLM'], model_type: 'qwen2', mlp_bias: undefined, ...window };
  }
});

test('each kind of layers of Gemma 3 has its own rotary positions, of which full attention has the scaling', () => {
  const [sliding, full] = [0, 5].map((layer) => {
    const mixer = readArchitecture(GEMMA3, 64).layers[layer]?.mixer;
    return mixer?.kind === 'attention' ? mixer.rotary?.inverse[1] : undefined;
  });
  expect(sliding).toBeCloseTo(1e4 ** (-2 / 256), 6);
  expect(full).toBeCloseTo(1e6 ** (-2 / 256) / 8, 6);
});

describe('what is refused, by name', () => {
  const scaled = (rope_scaling: object) => ({ ...LLAMA, rope_scaling });
  test.each<[unknown, RegExp]>([
    [undefined, /config\.json is no object/],
    [{ ...LLAMA, model_type: 'nemotron' }, /model_type: "nemotron", for which no graph is written; the families are/],
    [{ ...LLAMA, model_type: 'constructor' }, /for which no graph is written/],
    [{ ...LLAMA, architectures: ['MyLlamaForCausalLM'] }, /MyLlamaForCausalLM.*where LlamaForCausalLM is known/],
    [{ ...LLAMA, residual_multiplier: 0.5 }, /residual_multiplier: 0\.5, which is not known/],
    [{ ...LLAMA, sliding_window: 64 }, /sliding_window: 64/],
    [{ ...LLAMA, partial_rotary_factor: 0.5 }, /partial_rotary_factor: 0\.5/],
    [{ ...LLAMA, attention_bias: 'yes' }, /attention_bias: "yes"/],
    [{ ...LLAMA, hidden_act: 'swiglu' }, /hidden_act: "swiglu"/],
    [{ ...LFM2, hidden_act: 'gelu' }, /hidden_act: "gelu"/],
    [{ ...LLAMA, layer_types: ['full_attention'] }, /layer_types.*list of 4/],
    [{ ...LLAMA, num_key_value_heads: 3 }, /which do not divide/],
    [{ ...LLAMA, head_dim: 12 }, /heads of 12 elements, and only multiples of 8/],
    [{ ...LLAMA, hidden_size: 0 }, /hidden_size: 0, which is not a positive whole number/],
    [{ ...LLAMA, num_hidden_layers: 2000 }, /more than 1024/],
    [{ ...LLAMA, max_position_embeddings: '4096' }, /max_position_embeddings/],
    [scaled({ rope_type: 'dynamic', factor: 2 }), /rope_scaling\.rope_type: "dynamic"/],
    [scaled({ rope_type: 'linear' }), /does not say rope_scaling\.factor/],
    [scaled({ rope_type: 'linear', factor: 2, attention_temperature: 3 }), /rope_scaling\.attention_temperature/],
    [scaled({ rope_type: 'yarn', factor: -1 }), /rope_scaling\.factor: -1, which is not positive/],
    [scaled({ rope_type: 'yarn', factor: 2, llama_4_scaling_beta: 0.1 }), /llama_4_scaling_beta/],
    [{ ...LLAMA, rope_parameters: { full_attention: {} } }, /rope_parameters\.full_attention/],
    [{ ...GEMMA3, rope_parameters: { rope_theta: 1e4 } }, /rope_parameters\.rope_theta, where parameters of kinds/],
    [{ ...GEMMA3, attn_logit_softcapping: 50 }, /attn_logit_softcapping: 50/],
    [{ ...GEMMA3, use_bidirectional_attention: true }, /use_bidirectional_attention/],
    [{ ...QWEN3, layer_types: Array(4).fill('sliding_attention') }, /layer_types.*no sliding_window/],
    [{ ...OLMO3, layer_types: Array(4).fill('chunked_attention') }, /"chunked_attention" is not computed/],
    [{ ...LLAMA, quantization_config: { quant_method: 'mxfp4' } }, /quantised \(mxfp4\)/],
    ...['awq', 'gptq', 'fp8', 'bitsandbytes', 'compressed-tensors'].map((quant_method): [unknown, RegExp] => [
      { ...LLAMA, quantization_config: { quant_method } },
      new RegExp(`quantised \\(${quant_method}\\), which is not read here; use the copy of this model in bfloat16`),
    ]),
  ])('%j', (config, message) => {
    expect(architectureRefusal(config)).toMatch(message);
  });

  test('what says nothing is not refused', () => {
    expect(architectureRefusal({ ...LLAMA, sliding_window: null, residual_multiplier: null })).toBeNull();
    const gptOss = { model_type: 'gpt_oss', architectures: ['GptOssForCausalLM'], num_hidden_layers: 2 };
    expect(architectureRefusal({ ...gptOss, quantization_config: { quant_method: 'mxfp4' } })).toBeNull();
  });
});

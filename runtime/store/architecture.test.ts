import { expect, test } from 'vitest';
import { judgeArchitecture } from './architecture.ts';

const SHAPE = { hidden_size: 1024, num_hidden_layers: 16, num_attention_heads: 16, num_key_value_heads: 8 };

/** As mobius describes Qwen2-VL, Qwen2.5-VL and Qwen3-VL. */
const QWEN = {
  type: 'qwen2_5_vl',
  decoder: { filename: 'decoder/model.onnx', inputs: { inputs_embeds: 'inputs_embeds' } },
  embedding: { filename: 'embedding/model.onnx' },
  vision: { filename: 'vision_encoder/model.onnx', outputs: { image_features: 'image_features' } },
};
const DEEPSTACK = { outputs: { image_features: 'image_features', deep: 'deepstack_features_0' } };
const cutInto = (type: string, patch_size: number) => ({
  processor: { transforms: [{ operation: { type, attrs: { patch_size } } }] },
});

test.each<[what: string, model: object, processor: unknown, reads: string | null]>([
  ['patches of 14 pixels', QWEN, cutInto('PatchImage', 14), 'image'],
  ['the size of its patches in another step', QWEN, cutInto('Resize', 14), 'image'],
  ['no file about images', QWEN, undefined, 'image'],
  ['patches of 16 pixels', QWEN, cutInto('PatchImage', 16), null],
  ['patches of 16 pixels in its own section', { ...QWEN, vision: { ...QWEN.vision, patch_size: 16 } }, undefined, null],
  ['the name of Qwen3-VL', { ...QWEN, type: 'qwen3_vl' }, undefined, null],
  [
    'the name of Gemma 4 and the step that its images need',
    { ...QWEN, type: 'gemma4' },
    cutInto('Gemma4ImageTransform', 16),
    'image',
  ],
  ['the name of Gemma 4 without that step', { ...QWEN, type: 'gemma4' }, undefined, null],
  [
    'the name of Qwen3-VL and its deepstack features',
    { ...QWEN, type: 'qwen3_vl', vision: { ...QWEN.vision, ...DEEPSTACK } },
    undefined,
    'image',
  ],
])('media of a genai_config.json with %s', (_, model, processor, reads) => {
  const verdict = judgeArchitecture({ genai: { model }, processor });
  expect(verdict).toMatchObject({ refusal: null, reads });
  if (reads) expect(verdict.mediaRefusal).toBeNull();
  else expect(verdict.mediaRefusal).toMatch(/(deepstack features|how images are prepared).*Send text alone, or load/);
});

test.each<[what: string, config: unknown, genai: unknown, refusal: RegExp | null]>([
  ['a decoder', { model_type: 'llama', architectures: ['LlamaForCausalLM'] }, undefined, null],
  ['a kind that nobody has named here', { model_type: 'new', architectures: ['NewForCausalLM'] }, undefined, null],
  ['nothing', undefined, undefined, null],
  ['a file of another form', ['x'], 'x', null],
  ['an encoder', { model_type: 'bert', architectures: ['BertForMaskedLM'] }, undefined, /does not generate text/],
  ['an encoder with a decoder', { model_type: 't5', is_encoder_decoder: true }, undefined, /decoder-only/],
  ['a model without attention', { model_type: 'mamba2', architectures: ['Mamba2ForCausalLM'] }, undefined, /attention/],
  [
    'a Mamba hybrid',
    { model_type: 'granitemoehybrid', layer_types: ['mamba', 'attention'] },
    undefined,
    /Mamba layers/,
  ],
  ['a dense Granite 4', { model_type: 'granitemoehybrid', layer_types: ['attention'] }, undefined, null],
  [
    'a Gemma 4 with experts',
    { text_config: { model_type: 'gemma4_text', enable_moe_block: true } },
    undefined,
    /GeGLU/,
  ],
  ['a Gemma 4 without', { text_config: { model_type: 'gemma4_text', enable_moe_block: false } }, undefined, null],
  ['LFM2', { model_type: 'lfm2', layer_types: ['conv', 'full_attention'] }, undefined, null],
  [
    'the text part of a larger model',
    { architectures: ['XForConditionalGeneration'], text_config: { model_type: 'rwkv' } },
    undefined,
    /rwkv/,
  ],
  ['a decoder of tokens', undefined, { model: { decoder: { inputs: { input_ids: 'input_ids' } } } }, null],
  ['a decoder of embeddings', undefined, { model: { decoder: { inputs: { inputs_embeds: 'x' } } } }, /embeddings/],
  [
    'a decoder with graphs for images and audio',
    undefined,
    { model: { decoder: { inputs: { inputs_embeds: 'x' } }, vision: {}, speech: {}, embedding: {} } },
    /beside its decoder \(vision, speech\)/,
  ],
  ['Qwen2.5-VL by mobius', undefined, { model: QWEN }, null],
  ['a graph at another path', undefined, { model: { ...QWEN, vision: {} } }, /names no file as its graph "vision"/],
  [
    'a graph outside its folder',
    undefined,
    { model: { ...QWEN, decoder: { ...QWEN.decoder, filename: '../model.onnx' } } },
    /names \.\.\/model\.onnx as its graph "decoder", which is looked for at decoder\/model\.onnx or /,
  ],
  [
    'a processor that is not known',
    undefined,
    { model: { ...QWEN, vision: { ...QWEN.vision, config_filename: 'x.json' } } },
    /x\.json as the file that says how images are prepared/,
  ],
  [
    'a decoder of tokens and their embeddings',
    undefined,
    {
      model: { ...QWEN, type: 'gemma4', decoder: { ...QWEN.decoder, inputs: { input_ids: 'x', inputs_embeds: 'y' } } },
    },
    /as of a Gemma 4 whose image tokens attend to each other in both directions.*layout of transformers\.js/,
  ],
  ['a pipeline of decoders', undefined, { model: { ...QWEN, type: 'decoder-pipeline' } }, /not for decoder-pipeline/],
  [
    'a Granite that listens',
    { model_type: 'granite_speech', text_config: { model_type: 'granite' } },
    undefined,
    /granite_speech: .* Voxtral/,
  ],
  ['a Gemma 3 with images, whose text works', { model_type: 'gemma3', vision_config: {} }, undefined, null],
])('%s', (_, config, genai, refusal) => {
  const verdict = judgeArchitecture({ config, genai });
  if (refusal) expect(verdict.refusal).toMatch(refusal);
  else expect(verdict.refusal).toBeNull();
});

test.each<[what: string, config: object, reads: string | null, refusal: RegExp | null]>([
  ['a text model', { model_type: 'qwen3' }, null, null],
  ['SmolVLM', { model_type: 'smolvlm', vision_config: {} }, 'image', null],
  ['Voxtral', { model_type: 'voxtral', audio_config: {} }, 'audio', null],
  ['a small Gemma 4', { model_type: 'gemma4', vision_config: {}, audio_config: {} }, 'image', null],
  ['Gemma 3', { model_type: 'gemma3', vision_config: {} }, null, /^Images are refused .*in both directions/],
  ['the text part of Gemma 3', { model_type: 'gemma3_text' }, null, null],
  [
    'a large Gemma 4',
    { model_type: 'gemma4', vision_config: {}, text_config: { use_bidirectional_attention: 'vision' } },
    null,
    /^Images are refused with this model \(gemma4\): .*in both directions/,
  ],
  [
    'a family that is not known',
    { model_type: 'qwen2_audio', audio_config: {} },
    null,
    /^Audio is refused with this model \(qwen2_audio\): .*not known here\. Send text alone, or load/,
  ],
  [
    'one with two encoders',
    { model_type: 'gemma3n', vision_config: {}, audio_config: {} },
    null,
    /^Images and audio are/,
  ],
  ['a model type that is a member of every object', { model_type: 'toString', vision_config: {} }, null, /toString/],
])('media of %s', (_, config, reads, refusal) => {
  const verdict = judgeArchitecture({ config });
  expect(verdict.reads).toBe(reads);
  if (refusal) expect(verdict.mediaRefusal).toMatch(refusal);
  else expect(verdict.mediaRefusal).toBeNull();
});

test.each<[what: string, config: unknown, genai: unknown, bytes: number | null]>([
  ['heads of the rest of the width', SHAPE, undefined, 2 * 16 * 8 * 64 * 4],
  ['heads of their own size', { ...SHAPE, head_dim: 128 }, undefined, 2 * 16 * 8 * 128 * 4],
  [
    'attention in one layer of two',
    { ...SHAPE, num_hidden_layers: 2, layer_types: ['conv', 'full_attention'] },
    undefined,
    2 * 8 * 64 * 4,
  ],
  [
    'linear attention keeps no KV',
    { ...SHAPE, num_hidden_layers: 2, layer_types: ['linear_attention', 'sliding_attention'] },
    undefined,
    2 * 8 * 64 * 4,
  ],
  [
    'what genai_config.json says',
    undefined,
    { model: { decoder: { num_hidden_layers: 2, num_key_value_heads: 1, head_size: 16 } } },
    256,
  ],
  ['nothing', {}, undefined, null],
])('KV of a token: %s', (_, config, genai, bytes) => {
  expect(judgeArchitecture({ config, genai }).kvBytes).toBe(bytes);
});

import { type HubRepository, hubRepository } from './repository.ts';

/** Creates a repository in the layout of transformers.js with this configuration and both encoders. */
function inParts(config: { model_type: string; vision_config?: object; audio_config?: object }): HubRepository {
  return hubRepository(`acme/${config.model_type}`, {
    'config.json': JSON.stringify(config),
    'tokenizer.json': '{}',
    'onnx/decoder_model_merged_q4.onnx': 'decoder',
    'onnx/decoder_model_merged_q4.onnx_data': 'x'.repeat(200),
    'onnx/embed_tokens_q4.onnx': 'embeddings',
    'onnx/vision_encoder_q4.onnx': 'an encoder of images',
    'onnx/vision_encoder_q4.onnx_data': 'y'.repeat(300),
    'onnx/audio_encoder_q4.onnx': 'an encoder of audio',
  });
}

/** Creates a repository in the layout of onnxruntime-genai, as mobius writes it, in a folder. */
function genaiInParts(type: string, patch_size: number, step = 'PatchImage'): HubRepository {
  const inputs = { inputs_embeds: 'inputs_embeds' };
  const filename = (folder: string) => ({ filename: `${folder}/model.onnx` });
  const model = {
    type,
    decoder: { ...filename('decoder'), inputs },
    embedding: filename('embedding'),
    vision: { ...filename('vision_encoder'), outputs: { image_features: 'image_features' } },
  };
  const transforms = [{ operation: { type: step, attrs: { patch_size } } }];
  return hubRepository(`acme/genai-${type}-${patch_size}`, {
    'cpu-int4/genai_config.json': JSON.stringify({ model }),
    [`cpu-int4/${type === 'gemma4' ? 'image_processor' : 'processor_config'}.json`]: JSON.stringify({
      processor: { transforms },
    }),
    'cpu-int4/tokenizer.json': '{}',
    'cpu-int4/decoder/model.onnx': 'decoder',
    'cpu-int4/decoder/model.onnx.data': 'x'.repeat(200),
    'cpu-int4/embedding/model.onnx': 'embeddings',
    'cpu-int4/vision_encoder/model.onnx': 'an encoder of images',
    'cpu-int4/vision_encoder/model.onnx.data': 'y'.repeat(300),
  });
}

const GENAI_IMAGES = ['cpu-int4/vision_encoder/model.onnx', 'cpu-int4/vision_encoder/model.onnx.data'];
const IMAGES = ['onnx/vision_encoder_q4.onnx', 'onnx/vision_encoder_q4.onnx_data'];

/** Models in parts, each with the paths of the encoders that a pull fetches. */
export const READ_IN_PARTS: readonly [model: HubRepository, encoders: readonly string[]][] = [
  [inParts({ model_type: 'smolvlm', vision_config: {} }), IMAGES],
  [inParts({ model_type: 'voxtral', audio_config: {} }), ['onnx/audio_encoder_q4.onnx']],
  [inParts({ model_type: 'gemma4', vision_config: {}, audio_config: {} }), IMAGES],
  [inParts({ model_type: 'gemma3', vision_config: {} }), []],
  [inParts({ model_type: 'gemma3n', vision_config: {}, audio_config: {} }), []],
  [inParts({ model_type: 'llava', vision_config: {} }), []],
  [genaiInParts('qwen2_5_vl', 14), GENAI_IMAGES],
  [genaiInParts('qwen2_5_vl', 16), []],
  [genaiInParts('qwen3_vl', 16), []],
  [genaiInParts('gemma4', 16, 'Gemma4ImageTransform'), GENAI_IMAGES],
  [genaiInParts('gemma4', 48, 'Other'), []],
];

/** Returns the files of a model in parts that a pull fetches. */
export function neededInParts({ files }: HubRepository, encoders: readonly string[]): HubRepository['files'] {
  return files.filter(({ path }) => !path.includes('_encoder') || encoders.includes(path));
}

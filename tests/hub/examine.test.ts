import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { examineModel } from '../../runtime/hub/examine-model.ts';
import { assay } from '../cli/assay.ts';
import { HubServer } from './hub-server.ts';
import { machine, randomModel } from './pull.ts';
import { neededInParts, READ_IN_PARTS } from './read-in-parts.ts';
import { hubRepository } from './repository.ts';

const GENAI = JSON.stringify({
  model: {
    decoder: { num_hidden_layers: 2, num_key_value_heads: 1, head_size: 16, inputs: { input_ids: 'input_ids' } },
  },
});

/** As onnxruntime-genai's published configurations of models that read images. */
const GENAI_VISION = JSON.stringify({
  model: {
    type: 'gemma3',
    decoder: { num_hidden_layers: 2, head_size: 16, inputs: { inputs_embeds: 'inputs_embeds' } },
    embedding: { filename: 'embedding.onnx' },
    vision: { filename: 'vision.onnx' },
  },
});

let hub: HubServer;
beforeAll(async () => {
  hub = await HubServer.start(
    randomModel(),
    hubRepository('acme/genai', {
      'cpu-int4/genai_config.json': GENAI,
      'cpu-int4/tokenizer.json': '{}',
      'cpu-int4/model.onnx': 'graph',
      'cpu-int4/model.onnx.data': 'x'.repeat(6000),
    }),
    hubRepository('acme/mamba', {
      'config.json': '{"model_type":"mamba2"}',
      'tokenizer.json': '{}',
      'onnx/model_q4.onnx': 'weights',
    }),
    ...READ_IN_PARTS.map(([model]) => model),
    hubRepository('acme/speech', {
      'config.json': '{"model_type":"granite_speech","text_config":{"model_type":"granite"}}',
      'tokenizer.json': '{}',
      'onnx/decoder_model_merged_q4.onnx': 'decoder',
      'onnx/embed_tokens_q4.onnx': 'embeddings',
      'onnx/audio_encoder_q4.onnx': 'encoder',
    }),
    hubRepository('acme/genai-vision', {
      'cpu-int4/genai_config.json': GENAI_VISION,
      'cpu-int4/tokenizer.json': '{}',
      'cpu-int4/model.onnx': 'graph',
      'cpu-int4/vision.onnx': 'graph',
      'cpu-int4/embedding.onnx': 'graph',
    }),
    hubRepository('acme/genai-parts', {
      'cpu-int4/genai_config.json': GENAI_VISION,
      'cpu-int4/tokenizer.json': '{}',
      'cpu-int4/phi-3.5-v-instruct-text.onnx': 'graph',
      'cpu-int4/phi-3.5-v-instruct-vision.onnx': 'graph',
    }),
    hubRepository('acme/encoder', {
      'config.json':
        '{"model_type":"deberta-v2","architectures":["DebertaV2ForSequenceClassification"],"share_att_key":false,"id2label":{"0":"entailment","1":"not_entailment"}}',
      'tokenizer.json': '{}',
      'model.safetensors': 'weights',
    }),
    hubRepository('acme/torch', { 'config.json': '{}', 'pytorch_model.bin': 'x' }),
  );
});
afterAll(() => hub.stop());

async function examine(id: string) {
  const box = await machine(hub);
  return examineModel(box.hub, parseModelId(id), { device: 'CPU', signal: new AbortController().signal });
}

it('says what would be downloaded and how much memory it takes, from some kilobytes', async () => {
  const found = await examine('acme/genai');
  const kv = 2 * 2 * 16 * 4 * 4096;
  expect(found).toMatchObject({ refusal: null, chosen: { layout: 'genai', dtype: 'q4', path: 'packed' } });
  expect(found.chosen!.downloadBytes).toBe(GENAI.length + 2 + 5 + 6000);
  expect(found.chosen!.memoryBytes).toBe(Math.round(6005 / 0.6 + kv));
  expect(hub.bytesSent('cpu-int4/model.onnx.data')).toBe(0);
});

it('of the other layout says that the graph decides, and of a configuration without a shape no memory', async () => {
  expect(await examine('acme/tiny')).toMatchObject({
    refusal: null,
    chosen: { layout: 'transformers', path: null, memoryBytes: null },
  });
});

it.each([
  ['acme/mamba', /mamba2/],
  ['acme/torch', /for model\.safetensors\. It has pytorch_model\.bin\./],
  ['acme/encoder', /config\.json says share_att_key: false/],
  ['acme/speech', /granite_speech.*use Voxtral or Ultravox/],
  [
    'acme/genai-vision',
    /\(vision\).*supported for qwen2_5_vl, qwen3_vl, gemma4, not for gemma3.*layout of transformers\.js/,
  ],
  ['acme/genai-parts', /several graphs.*layout of transformers\.js/],
])('%s is refused with the reason', async (id, reason) => {
  expect((await examine(id)).refusal).toMatch(reason);
});

it('an encoder whose graph cannot be written is refused before its weights are fetched', async () => {
  const { pull } = await machine(hub);
  await expect(pull({}, parseModelId('acme/encoder'))).rejects.toThrow(/share_att_key/);
  expect(hub.bytesSent('model.safetensors')).toBe(0);
});

it('a Gemma 3 with images is for text alone, which assay doctor says too', async () => {
  const { refusal, mediaRefusal } = await examine('acme/gemma3');
  expect(refusal).toBeNull();
  expect(mediaRefusal).toMatch(/in both directions/);
  expect((await examine('acme/genai')).mediaRefusal).toBeNull();
  const said = await assay(['doctor', '--model', 'acme/gemma3'], { env: { HF_ENDPOINT: hub.endpoint } });
  expect(said).toMatchObject({ code: 0, out: expect.stringMatching(/text only: Images are refused/) });
});

it('the encoder of images or audio counts as a download where it is used', async () => {
  const bytesOf = async (id: string) => (await examine(id)).chosen?.downloadBytes;
  for (const [model, encoders] of READ_IN_PARTS) {
    const sizes = neededInParts(model, encoders).map(({ content }) => content.length);
    expect(await bytesOf(model.id)).toBe(sizes.reduce((sum, size) => sum + size, 0));
  }
});

it.each([
  ['llava', /^Images are refused with this model \(llava\): how its family reads them is not known here\. Send text/],
  ['gemma3n', /^Images and audio are refused with this model \(gemma3n\): /],
  ['smolvlm', null],
])('%s: says whether its images are refused', async (type, said) => {
  const { refusal, mediaRefusal } = await examine(`acme/${type}`);
  expect(refusal).toBeNull();
  if (said) expect(mediaRefusal).toMatch(said);
  else expect(mediaRefusal).toBeNull();
});

it('a model that is not there is an error', async () => {
  await expect(examine('acme/nothing')).rejects.toMatchObject({ code: expect.stringMatching(/^model_/) });
});

it('assay doctor --model says it, and ends with 1 for a model that cannot run', async () => {
  const env = { HF_ENDPOINT: hub.endpoint };
  const good = await assay(['doctor', '--model', 'acme/genai'], { env });
  expect(good).toMatchObject({ code: 0 });
  expect(good.out).toMatch(/should run here.*assay -- pull acme\/genai/s);
  const bad = await assay(['doctor', '--model', 'acme/mamba', '--json'], { env });
  expect(bad).toMatchObject({ code: 1 });
  expect(JSON.parse(bad.out)).toMatchObject({ model: 'acme/mamba', refusal: expect.stringMatching(/attention/) });
});

import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import type { MediaKind, Part } from '../../lib/contract/conversation.ts';
import { Engine } from '../../runtime/engine/engine.ts';
import { FIRST_MEDIA_ID } from '../../runtime/engine/forward/media-feeds.ts';
import { type EngineModel, kvShape, openModel } from '../../runtime/engine/model.ts';
import { decodeAudio } from '../../runtime/media/audio/decode-audio.ts';
import { logMel } from '../../runtime/media/audio/log-mel.ts';
import { cutTiles, decodeImage, imageSize } from '../../runtime/media/decode-image.ts';
import { readMediaFamily } from '../../runtime/media/families/read-family.ts';
import type { MediaPlan } from '../../runtime/media/media-plan.ts';
import { TEXT_FILES } from '../../runtime/store/model-files.ts';
import { encodeChat } from '../../runtime/text/prompt.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { planChat } from '../../runtime/worker/chat-job.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { openMediaEncoder } from '../../runtime/worker/load-model.ts';
import { featuresOf, type MediaEncoder } from '../../runtime/worker/media-encoder.ts';
import { fixture } from '../fixture.ts';
import { goldenOf, MEDIA_TOKEN, partsOf } from './golden.ts';

const folder = mkdtempSync(join(tmpdir(), 'assay-media-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Reads the facts of a file, as the media process does. */
async function factsOf(type: MediaKind, bytes: Buffer) {
  return type === 'image' ? imageSize(bytes) : { samples: (await decodeAudio(bytes)).length };
}

/** Prepares a file for the encoder, as the media process does. */
async function prepared(bytes: Buffer, plan: MediaPlan): Promise<Uint8Array> {
  if ('tile' in plan) return cutTiles(await decodeImage(bytes), plan);
  return new Uint8Array(logMel(await decodeAudio(bytes), plan).buffer);
}

/** Stands for the decoder of a model whose files are arranged by `asOliveWrites`. */
const OLIVE = 'olive';

/**
 * The models. Some are there with the decoder of either exporter: with fused attention, whose branches are packed, and
 * without.
 */
const MODELS = [
  { model: 'smolvlm' as const, decoder: 'smolvlm/onnx', path: 'packed' },
  { model: 'smolvlm' as const, decoder: 'smolvlm-plain', path: 'plain' },
  { model: 'qwen2-vl' as const, decoder: 'qwen2-vl/onnx', path: 'packed' },
  { model: 'qwen2-vl' as const, decoder: 'qwen2-vl-plain', path: 'plain' },
  { model: 'qwen2.5-vl' as const, decoder: 'qwen2.5-vl/onnx', path: 'packed' },
  { model: 'qwen3-vl' as const, decoder: 'qwen3-vl/onnx', path: 'packed' },
  { model: 'genai-qwen2-vl' as const, decoder: 'genai-qwen2-vl', path: 'packed' },
  { model: 'genai-qwen2.5-vl' as const, decoder: 'genai-qwen2.5-vl', path: 'packed' },
  { model: 'genai-qwen2.5-vl' as const, decoder: 'genai-qwen2.5-vl-plain', path: 'plain' },
  { model: 'qwen2.5-vl' as const, decoder: OLIVE, path: 'packed' },
  { model: 'genai-gemma4' as const, decoder: 'genai-gemma4', path: 'plain' },
  { model: 'gemma4' as const, decoder: 'gemma4/onnx', path: 'plain' },
  { model: 'voxtral' as const, decoder: 'voxtral/onnx', path: 'packed' },
  { model: 'ultravox' as const, decoder: 'ultravox/onnx', path: 'packed' },
];

/**
 * Arranges a model as Olive's recipes do for onnxruntime-genai: all graphs in one folder, and no `config.json`. The
 * graphs are those of the layout of transformers.js, whose embeddings take tokens alone.
 */
function asOliveWrites(name: string): string {
  const made = mkdtempSync(join(folder, 'olive-'));
  const from = fixture(`media/${name}`);
  copyFileSync(join(from, 'onnx/decoder_model_merged.onnx'), join(made, 'model.onnx'));
  copyFileSync(join(from, 'onnx/embed_tokens.onnx'), join(made, 'embedding.onnx'));
  copyFileSync(join(from, 'onnx/vision_encoder.onnx'), join(made, 'vision.onnx'));
  for (const file of ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'])
    copyFileSync(join(from, file), join(made, file));
  const read = (file: string) => JSON.parse(readFileSync(join(from, file), 'utf8'));
  const { image_token_id, text_config } = read('config.json');
  const { min_pixels, max_pixels, image_mean, image_std, rescale_factor, ...cut } = read('preprocessor_config.json');
  const { patch_size, merge_size, temporal_patch_size } = cut;
  const step = (type: string, attrs: object) => ({ operation: { name: type, type, attrs } });
  const transforms = [
    step('DecodeImage', { color_space: 'RGB' }),
    step('Resize', { smart_resize: 1, min_pixels, max_pixels, patch_size, merge_size }),
    step('Rescale', { rescale_factor }),
    step('Normalize', { mean: image_mean, std: image_std, qwen2_5_vl: 1 }),
    step('PatchImage', { patch_size, temporal_patch_size, merge_size }),
  ];
  const write = (file: string, value: object) => writeFileSync(join(made, file), JSON.stringify(value));
  write('processor_config.json', { processor: { name: 'qwen2_5_image_processor', transforms } });
  const names = (...all: string[]) => Object.fromEntries(all.map((one) => [one, one]));
  const model = {
    type: 'qwen2_5_vl',
    context_length: text_config.max_position_embeddings,
    eos_token_id: text_config.eos_token_id,
    image_token_id,
    decoder: { filename: 'model.onnx', inputs: names('inputs_embeds', 'attention_mask', 'position_ids') },
    embedding: { filename: 'embedding.onnx', inputs: names('input_ids') },
    vision: { filename: 'vision.onnx', config_filename: 'processor_config.json', patch_size },
  };
  write('genai_config.json', { model });
  return made;
}

interface Opened {
  dir: string;
  model: EngineModel;
  media: MediaEncoder;
}

async function openMedia(name: string, decoder: string): Promise<Opened> {
  const { media, ...opened } = await openModelOf(name, decoder);
  if (typeof media === 'string') throw new Error(media);
  return { ...opened, media };
}

/** Compiles and opens a model. `config`: what its configuration says instead. */
async function openModelOf(name: string, decoder: string, config?: object) {
  const base = mkdtempSync(join(folder, 'model-'));
  const source = join(base, 'source');
  const dir = join(base, 'compiled');
  if (decoder === OLIVE) cpSync(asOliveWrites(name), source, { recursive: true });
  else cpSync(fixture(`media/${name}`), source, { recursive: true });
  if (decoder !== OLIVE)
    cpSync(fixture(`media/${decoder}`), name.startsWith('genai') ? source : join(source, 'onnx'), { recursive: true });
  const configFile = join(source, 'config.json');
  if (config) writeFileSync(configFile, JSON.stringify({ ...JSON.parse(readFileSync(configFile, 'utf8')), ...config }));
  await compileModel({ source, target: dir, device: 'CPU', precision: 'keep', maxPromptLen: 1536 });
  for (const name of TEXT_FILES) if (existsSync(join(source, name))) copyFileSync(join(source, name), join(dir, name));
  const model = await openModel(dir, { threads: 1 });
  const { media } = model.manifest;
  const family = await readMediaFamily(dir, model.manifest.maxPromptLen);
  if (!media || !family) throw new Error('the model reads no media');
  return { dir, model, media: await openMediaEncoder(dir, media, family, 1) };
}

/** Opens files as the server and its media process do. */
async function openParts(parts: readonly Part[]) {
  const files = new Map<string, Buffer>();
  const made = parts.map(async (part): Promise<Part> => {
    if (part.type === 'text' || part.source.type !== 'base64') return part;
    const bytes = Buffer.from(part.source.data, 'base64');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    files.set(sha256, bytes);
    return { ...part, opened: { sha256, ...(await factsOf(part.type, bytes)) } };
  });
  return { parts: await Promise.all(made), files };
}

it('a Qwen3-VL whose files leave out the deepstack features is read as text alone, and says why', async () => {
  const { dir, model, media } = await openModelOf('qwen2.5-vl', 'qwen2.5-vl/onnx', { model_type: 'qwen3_vl' });
  await model.close();
  if (typeof media !== 'string') throw new Error('the encoder was opened');
  const text = { ...(await loadTextModel(dir, { vocabSize: model.manifest.vocabSize })), mediaRefusal: media };
  const { parts } = await openParts(partsOf(goldenOf('qwen2.5-vl').cases[0]!));
  expect(() => atOnce(encodeChat(text, [{ role: 'user', parts }]))).toThrow(
    expect.objectContaining({ code: 'unsupported_modality', message: expect.stringContaining('deepstack') }),
  );
});

it('an encoder with an input that is not known is not used, and its name is said', async () => {
  const { dir, model } = await openModelOf('qwen2-vl', 'qwen2-vl/onnx');
  await model.close();
  const family = await readMediaFamily(dir, 1536);
  const older = { ...family!, inputNames: ['pixel_values'] };
  expect(await openMediaEncoder(dir, model.manifest.media!, older, 1)).toContain('the input "grid_thw"');
});

describe.each(MODELS)('$model, $path', ({ model: name, decoder, path }) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await openMedia(name, decoder);
  });
  afterAll(() => opened.model.close());

  it('takes that path', () => expect(opened.model.manifest.path).toBe(path));

  it.each(goldenOf(name).cases.map((one, i) => [i, one] as const))(
    'case %d: the prompt and 32 greedy tokens are those of Python',
    async (_, one) => {
      const { dir, model, media } = opened;
      const { parts, files } = await openParts(partsOf(one));
      const text = { ...(await loadTextModel(dir, { vocabSize: model.manifest.vocabSize })), media };
      const request = {
        messages: [{ role: 'user' as const, parts }],
        temperature: 0,
        stop: [],
        presencePenalty: 0,
        frequencyPenalty: 0,
        format: { type: 'text' as const },
      };
      const shown = media.of({ kind: 'chat', request });
      const { maxPromptLen, contextLength } = model.manifest;
      const { prefix, branches } = atOnce(planChat(text, request, { maxPromptLen, contextLength })).plan(() => {});
      const [branch] = branches;
      const ids = [...prefix, ...branch!.suffix];
      expect(ids.map((id) => (id >= FIRST_MEDIA_ID ? MEDIA_TOKEN[name] : id))).toEqual(one.prompt);

      const wanted = media.wanted(shown).map(async ({ sha256, detail, plan }) => {
        return { sha256, detail, data: await prepared(files.get(sha256)!, plan) };
      });
      const between = <T>(work: () => Promise<T>) => work();
      await media.encode(shown, await Promise.all(wanted), { between, signal: new AbortController().signal });

      const kv = kvShape(model.manifest);
      const engine = new Engine({ forward: model.forward, kv, maxPromptLen, contextLength, kvBytes: 1 << 26 });
      // Python goes on behind the end token, too.
      const endless = { ...branch!, endTokens: new Set<number>(), maxTokens: 32 };
      const features = featuresOf(shown);
      const job = {
        id: 'a',
        prefix,
        media: features,
        branches: [endless],
        budget: 32,
        deadline: Number.POSITIVE_INFINITY,
      };
      const result = engine.submit(job);
      while (await engine.step());
      expect((await result).branches[0]!.tokens).toEqual(one.greedy);
    },
  );
});

import { describe, expect, it } from 'vitest';
import type { Dtype } from './dtypes.ts';
import { pathInVariant, pathsOf, selectModelFiles, withEncoderFor } from './model-files.ts';

/** Returns files of a large model, with a gigabyte in each graph. */
const entries = (...paths: string[]) => paths.map((path) => ({ path, size: path.includes('.onnx') ? 2 ** 30 : 1000 }));
const TEXT = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json'];
/** Files of Qwen3-0.6B, as onnx-community publishes them. */
const COMMUNITY = entries(
  '.gitattributes',
  'README.md',
  ...TEXT,
  'vocab.json',
  'merges.txt',
  'special_tokens_map.json',
  'chat_template.jinja',
  'onnx/model.onnx',
  'onnx/model.onnx_data',
  'onnx/model_bnb4.onnx',
  'onnx/model_fp16.onnx',
  'onnx/model_fp16.onnx_data',
  'onnx/model_fp16.onnx_data_1',
  'onnx/model_int8.onnx',
  'onnx/model_q4.onnx',
  'onnx/model_q4f16.onnx',
  'onnx/model_quantized.onnx',
  'onnx/model_uint8.onnx',
);
/** Returns the files of one folder of Phi, as Microsoft publishes it for onnxruntime-genai. */
const genai = (folder: string) =>
  ['genai_config.json', 'model.onnx', 'model.onnx.data', 'tokenizer.json', 'tokenizer_config.json'].map(
    (name) => `${folder}/${name}`,
  );
const GENAI = entries(
  'config.json',
  'README.md',
  ...genai('gpu/gpu-int4-rtn-block-32'),
  ...genai('cpu_and_mobile/cpu-int4-rtn-block-32-acc-level-4'),
);

const graphOf = (...args: Parameters<typeof selectModelFiles>) => {
  const selection = selectModelFiles(...args);
  return 'files' in selection ? selection.files.graph : selection.missing;
};

describe('a model in parts of onnxruntime-genai', () => {
  const select = (...paths: string[]) => selectModelFiles(entries('tokenizer.json', ...paths), { device: 'CPU' });

  it.each([
    ['mobius', 'decoder/model.onnx', 'embedding/model.onnx', 'vision_encoder/model.onnx'],
    ['Olive', 'text.onnx', 'embedding.onnx', 'vision.onnx'],
    ['the builder, and scripts', 'model.onnx', 'embedding.onnx', 'vision.onnx'],
  ])('as written by %s', (_, graph, embeddings, image) => {
    const all = [graph, embeddings, image].map((path) => `cpu/${path}`);
    const found = select('cpu/genai_config.json', ...all, `cpu/${image}.data`);
    if ('missing' in found) throw new Error(found.missing);
    const { files } = found;
    expect(files).toMatchObject({ layout: 'genai', graph: `cpu/${graph}`, data: [`cpu/${image}.data`] });
    expect(files.parts).toEqual({ embeddings: `cpu/${embeddings}`, image: `cpu/${image}` });
    const here = ['tokenizer.json', 'genai_config.json', `${image}.data`, embeddings, image, graph];
    expect(pathsOf(files).map((path) => pathInVariant(files, path))).toEqual(here);
    expect(pathsOf(withEncoderFor(null, files))).toEqual([
      'tokenizer.json',
      'cpu/genai_config.json',
      `cpu/${embeddings}`,
      `cpu/${graph}`,
    ]);
    expect(withEncoderFor('image', files)).toEqual(files);
  });
});

describe('the best variant', () => {
  it.each<['CPU' | 'GPU' | 'NPU', Dtype | undefined, string]>([
    ['CPU', undefined, 'onnx/model_q4.onnx'],
    ['GPU', undefined, 'onnx/model_q4f16.onnx'],
    ['NPU', undefined, 'onnx/model_q4f16.onnx'],
    ['CPU', 'fp16', 'onnx/model_fp16.onnx'],
    ['CPU', 'fp32', 'onnx/model.onnx'],
    ['GPU', 'int8', 'onnx/model_int8.onnx'],
    ['CPU', 'q8', 'onnx/model_quantized.onnx'],
  ])('on %s, asked for %s: %s', (device, dtype, graph) => {
    expect(graphOf(COMMUNITY, { device, ...(dtype ? { dtype } : {}) })).toBe(graph);
  });

  it.each<['CPU' | 'GPU', Dtype | undefined, number, string]>([
    ['CPU', undefined, 100e6, 'onnx/model_fp16.onnx'],
    ['CPU', undefined, 250e6, 'onnx/model_q4.onnx'],
    ['CPU', 'q4', 100e6, 'onnx/model_q4.onnx'],
    ['GPU', undefined, 100e6, 'onnx/model_q4f16.onnx'],
  ])('on %s, asked for %s, of a small model with files of %i bytes: %s', (device, dtype, size, graph) => {
    const small = COMMUNITY.map(({ path }) => ({ path, size: path.includes('.onnx') ? size : 1000 }));
    expect(graphOf(small, { device, ...(dtype ? { dtype } : {}) })).toBe(graph);
  });

  it.each<[number, string]>([
    [100e6, 'cpu-fp32/model.onnx'],
    [2 ** 30, 'cpu-int4/model.onnx'],
  ])('of folders for onnxruntime-genai with files of %i bytes: %s', (size, graph) => {
    const files = entries(...genai('cpu-fp32'), ...genai('cpu-int4'));
    const sized = files.map(({ path }) => ({ path, size: path.includes('.onnx') ? size : 1000 }));
    expect(graphOf(sized, { device: 'CPU' })).toBe(graph);
  });

  it('comes with its external data and the text files, and with nothing else', () => {
    const selection = selectModelFiles(COMMUNITY, { device: 'CPU', dtype: 'fp16' });
    if (!('files' in selection)) throw new Error(selection.missing);
    expect(pathsOf(selection.files).sort()).toEqual(
      [
        ...TEXT,
        'chat_template.jinja',
        'onnx/model_fp16.onnx',
        'onnx/model_fp16.onnx_data',
        'onnx/model_fp16.onnx_data_1',
      ].sort(),
    );
  });

  it.each([
    ['', []],
    ['gpu/gpu-int4-rtn-block-32/', genai('gpu/gpu-int4-rtn-block-32')],
  ])('comes with the template for tools in %j, and not with other additional ones', (folder, model) => {
    const path = `${folder}additional_chat_templates/tool_use.jinja`;
    const own = model.length > 0 ? entries('config.json', ...model) : COMMUNITY;
    const selection = selectModelFiles([...own, ...entries(path, path.replace('tool_use', 'rag'))], { device: 'GPU' });
    if (!('files' in selection)) throw new Error(selection.missing);
    expect(selection.files.support['tool_use.jinja']).toBe(path);
    expect(pathsOf(selection.files).filter((name) => name.includes('rag'))).toEqual([]);
  });

  it.each([
    ['CPU', 'cpu_and_mobile/cpu-int4-rtn-block-32-acc-level-4/model.onnx'],
    ['GPU', 'gpu/gpu-int4-rtn-block-32/model.onnx'],
  ] as const)('of a genai repository on %s: %s', (device, graph) => {
    const selection = selectModelFiles(GENAI, { device });
    if (!('files' in selection)) throw new Error(selection.missing);
    const folder = graph.slice(0, -'model.onnx'.length);
    expect(selection.files).toMatchObject({
      layout: 'genai',
      dtype: 'q4',
      graph,
      data: [`${folder}model.onnx.data`],
      support: { 'tokenizer.json': `${folder}tokenizer.json`, 'config.json': 'config.json' },
    });
  });

  it('of a repository with everything at the top', () => {
    expect(graphOf(entries(...TEXT, 'model.onnx'), { device: 'CPU' })).toBe('model.onnx');
    expect(graphOf(entries('genai_config.json', 'model.onnx', 'tokenizer.json'), { device: 'CPU' })).toBe('model.onnx');
  });
});

const INDEX = 'model.safetensors.index.json';
const shards = (stem: string) => [1, 2].map((shard) => `${stem}-0000${shard}-of-00002.safetensors`);

describe('a checkpoint without a graph', () => {
  it.each<[string, string[], object]>([
    ['in one file', ['model.safetensors'], { graph: 'model.safetensors', data: [] }],
    ['in shards', [INDEX, ...shards('model')], { graph: INDEX, data: shards('model') }],
    ['in shards of the other name', [INDEX, ...shards('model.safetensors')], { data: shards('model.safetensors') }],
    ['beside files of other programs', ['model.safetensors', 'consolidated.safetensors'], { data: [] }],
    ['beside a graph, which is used', ['model.safetensors', 'onnx/model_q4.onnx'], { graph: 'onnx/model_q4.onnx' }],
  ])('%s', (_, paths, files) => {
    expect(selectModelFiles(entries(...TEXT, ...paths), { device: 'CPU' })).toMatchObject({ files });
  });

  it('has no number format to ask for', () => {
    const files = entries(...TEXT, 'model.safetensors');
    expect(graphOf(files, { device: 'CPU', dtype: 'q4' })).toMatch(/read as it is: leave out --dtype/);
  });
});

describe('what is missing', () => {
  it.each([
    [entries('config.json', 'README.md'), 'It has no weights at all; a copy under onnx-community may.'],
    [entries(...TEXT, 'pytorch_model.bin'), 'It has pytorch_model.bin.'],
    [entries('config.json', 'model.safetensors'), 'It has no tokenizer.json.'],
    [entries(...TEXT, INDEX), 'It has model.safetensors.index.json, but none of the files that it lists.'],
    [
      entries(...TEXT, INDEX, 'model-00002-of-00003.safetensors'),
      'It has 1 of the 3 files of its weights, but lacks model-00001-of-00003.safetensors, model-00003-of-00003.safetensors.',
    ],
    [entries(...TEXT, 'onnx/decoder.onnx'), 'It has onnx/decoder.onnx.'],
    [
      entries(...TEXT, 'onnx/model_bnb4.onnx'),
      ' It has onnx/model_bnb4.onnx. Weights in bnb4 are not read here. Use a copy of this model with a file in q4f16, q4, ',
    ],
    [
      entries(...TEXT, 'onnx/decoder_model_merged_bnb4.onnx', 'onnx/embed_tokens_uint8.onnx'),
      ' Weights in bnb4 and uint8 are not read here. ',
    ],
    [entries('config.json', 'onnx/model.onnx'), 'It has no tokenizer.json.'],
    [entries('onnx/model.onnx'), 'It has no config.json and tokenizer.json.'],
    [entries('genai_config.json', 'model.onnx'), 'It has no tokenizer.json.'],
  ])('%j', (files, sentence) => {
    expect(graphOf(files, { device: 'CPU' })).toContain(sentence);
  });
});

it('names the number formats to ask for if the one asked for is missing', () => {
  const files = entries(...TEXT, 'onnx/model_fp16.onnx', 'onnx/model.onnx', 'onnx/model_bnb4.onnx');
  expect(graphOf(files, { device: 'CPU', dtype: 'q4' })).toMatch(
    / Ask for another number format: --dtype fp16 or fp32$/u,
  );
});

describe('a model in parts', () => {
  /** Files of SmolVLM, as onnx-community publishes them. */
  const VISION = entries(
    ...TEXT,
    'preprocessor_config.json',
    'processor_config.json',
    'onnx/decoder_model_merged.onnx',
    'onnx/decoder_model_merged_q4.onnx',
    'onnx/decoder_model_merged_q4.onnx_data',
    'onnx/embed_tokens.onnx',
    'onnx/embed_tokens_q4.onnx',
    'onnx/vision_encoder.onnx',
    'onnx/vision_encoder.onnx_data',
  );

  it('comes with its embeddings and its encoder, each in the nearest format', () => {
    const selection = selectModelFiles(VISION, { device: 'CPU' });
    if (!('files' in selection)) throw new Error(selection.missing);
    expect(pathsOf(selection.files).sort()).toEqual(
      [
        ...TEXT,
        'preprocessor_config.json',
        'processor_config.json',
        'onnx/decoder_model_merged_q4.onnx',
        'onnx/decoder_model_merged_q4.onnx_data',
        'onnx/embed_tokens_q4.onnx',
        'onnx/vision_encoder.onnx',
        'onnx/vision_encoder.onnx_data',
      ].sort(),
    );
  });

  it('is none without its embeddings', () => {
    const decoder = VISION.filter(({ path }) => !path.includes('embed_tokens'));
    expect(graphOf(decoder, { device: 'CPU' })).toMatch(/^Looked for/u);
  });
});

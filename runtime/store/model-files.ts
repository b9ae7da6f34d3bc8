import type { Device } from '../../lib/backend.ts';
import type { MediaKind } from '../../lib/contract/conversation.ts';
import { ENCODER_FILES, type EncoderContract, graphRoles, writesGraph } from '../contracts/encoder-contracts.ts';
import { DTYPE_SUFFIX, DTYPES, type Dtype } from './dtypes.ts';
import { folderOf, GENAI_CONFIG, GENAI_GRAPHS, type GenaiGraph } from './genai-config.ts';
import { ENCODERS } from './media-models.ts';
import { baseName } from './paths.ts';

/** File name, in a compiled model's folder, of the chat template that is used when a request offers tools. */
export const TOOL_TEMPLATE_FILE = 'tool_use.jinja';

/** Names of a checkpoint in one file, and of the list of its shards (`checkpoint/safetensors.ts`). */
const [SINGLE_FILE, INDEX_FILE] = ['model.safetensors', 'model.safetensors.index.json'];
/** Name of a GGUF file in a compile's source. */
export const GGUF_FILE = 'model.gguf';
/** Ends the names of GGUF files. */
export const GGUF_SUFFIX = '.gguf';
/** Ends the name of the folder, beside a GGUF file in the cache, with the files that are made from its metadata. */
export const DERIVED_SUFFIX = '.assay';
/** Matches a part of a model in several GGUF files, and an encoder of images in one. */
const GGUF_PART = /-\d{5}-of-\d{5}\.gguf$/u;
const GGUF_ENCODER = /(?:^|\/)mmproj[^/]*$/iu;
/** Maximum number of files that a message names. */
const MOST_NAMED = 24;
/** Matches the name of a shard, in both forms that are published. */
const SHARD = /^(model(?:\.safetensors)?-)(\d{5})-of-(\d{5})\.safetensors$/u;

/** Folder of a repository, or of a compile's source, with the language model below a decision model's own head. */
export const BACKBONE_FOLDER = 'backbone';
/** Name of the weights of an adapter, which change those of a base model in another repository. */
export const ADAPTER_WEIGHTS = 'adapter_model.safetensors';
/** Folders of a repository in which its adapter may be. */
const ADAPTER_FOLDERS = ['', 'lora/', 'adapter/'];

/** Text files that a base model gives to an adapter without a tokenizer of its own. */
const OF_TOKENIZER: ReadonlySet<string> = new Set([
  ...['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja', 'chat_template.json', TOOL_TEMPLATE_FILE],
  'generation_config.json',
]);

/** Folder of a repository in which transformers saves all chat templates except the default one. */
const TEMPLATE_FOLDER = 'additional_chat_templates/';

/**
 * Names of the small files beside a decision model's weights that say how it is asked and how its answer is read
 * (`runtime/contracts/`). They are fetched before the weights.
 */
export const CONTRACT_FILES = [
  'decider_config.json',
  'decision_config.json',
  'strands_decider_config.json',
  'hobson_config.json',
  'adapter_config.json',
  'provenance.json',
  'head.pt',
  'score_bias.json',
  'runtime.json',
  'temperature.json',
  'temperature_config.json',
  'schema_config.json',
  'lev_release.json',
  'calibration.json',
  'jevk5_config.json',
  'joint_head_config.json',
  'joint_head.safetensors',
  'export.json',
  'head.safetensors',
  'readout.safetensors',
  'decision_head.safetensors',
] as const;

/**
 * Names of the text files that a compiled model copies from its source: configuration, tokenizer, chat template and
 * media preprocessing.
 */
export const TEXT_FILES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'chat_template.json',
  TOOL_TEMPLATE_FILE,
  'config.json',
  'generation_config.json',
  'genai_config.json',
  'preprocessor_config.json',
  'processor_config.json',
  'image_processor.json',
  ...CONTRACT_FILES,
  'encoder_config.json',
  'rl_agent_config.json',
  'calibration_u.json',
  'opendecider.json',
  'open_decision.json',
  'calibrator.json',
  'gliner2_config.json',
] as const;

/** Other paths of text files, for repositories that have none with that name at the top. */
const OTHER_PATHS: Readonly<Record<string, readonly string[]>> = {
  ...ENCODER_FILES,
  'tokenizer.json': ['tokenizer/tokenizer.json', 'tokenizer.web.json'],
};

/** Describes a file of a repository or a directory. */
export interface FileEntry {
  /** Path relative to the model's directory, with `/` as the separator. */
  path: string;
  /** Size in bytes. */
  size: number;
}

/**
 * Number formats to download for each device, best first. On a CPU, half precision only adds conversions. The published
 * 8-bit graphs come last for CPUs and GPUs: they have one activation scale for a whole tensor, through which packed
 * branches change each other's answers (measured).
 */
const PREFERENCE: Readonly<Record<Device, readonly Dtype[]>> = {
  CPU: ['q4', 'q4f16', 'fp16', 'fp32', 'int8', 'q8'],
  GPU: ['q4f16', 'q4', 'fp16', 'fp32', 'int8', 'q8'],
  NPU: ['q4f16', 'q4', 'int8', 'q8', 'fp16', 'fp32'],
};

/**
 * Largest half-precision weights, in bytes, of a model that a CPU runs unquantized: 300 million parameters. Small
 * models lose the most accuracy in 4 bits and save the least memory. Measured (docs/models.md, "Precisions"):
 * SmolLM2-135M finds 40% of the fields in floats and 22% in published 4 bits.
 */
const SMALL_BYTES = 600_000_000;

/**
 * Names the layout of a repository: that of `onnx-community` (transformers.js), that of onnxruntime-genai, a checkpoint
 * without a graph, as the authors of models publish it, a GGUF file, or that of an encoder model.
 */
export type PublishedLayout = 'transformers' | 'genai' | 'checkpoint' | 'gguf' | 'encoder';

/** Paths of all graphs but the decoder, for a model that is split into several graphs. */
export type ModelParts = { readonly embeddings: string } & { readonly [K in MediaKind]?: string };

/** Lists the files of one variant of a model, as paths relative to the model's directory. */
export interface ModelFiles {
  layout: PublishedLayout;
  /** Number format of the weights; null if the repository does not state it. */
  dtype: Dtype | null;
  /**
   * Path of the language model's ONNX graph; of a checkpoint, the file of its weights, the list of its shards, or the
   * weights of its adapter; the GGUF file.
   */
  graph: string;
  /** True if `graph` is an adapter, so that the weights are those of a base model in another repository. */
  adapter?: true;
  /** Paths of the separate graphs for embeddings and the media encoders; absent if there are none. */
  parts?: ModelParts;
  /** Paths of all graphs of an encoder model by what they compute, `graph` included; absent for other models. */
  roles?: Readonly<Record<string, string>>;
  /** Paths of the external weight data of all graphs. */
  data: readonly string[];
  /** Path of each existing file of `TEXT_FILES`, by its name. */
  support: Readonly<Record<string, string>>;
}

export type FileSelection = { files: ModelFiles } | { missing: string };

/** Text files without which a model of this layout cannot be used. */
const REQUIRED: Readonly<Record<PublishedLayout, readonly string[]>> = {
  transformers: ['config.json', 'tokenizer.json'],
  genai: ['tokenizer.json'],
  checkpoint: ['config.json', 'tokenizer.json'],
  // These are made from the file when it is there.
  gguf: [],
  encoder: ['tokenizer.json'],
};

export interface SelectOptions {
  device: Device;
  /** Number format that the variant must have; default: the best for the device. */
  dtype?: Dtype;
  /** GGUF file to use, or a part of its name, such as `Q4_K_M`; absent: another layout, or the only GGUF file. */
  file?: string;
  /** True for the base model of an adapter: only its checkpoint will do, and no tokenizer is needed. */
  base?: boolean;
  /** Contract of an encoder model; absent or null: the model is not known to be one. */
  contract?: EncoderContract | null;
}

/**
 * Selects the files that the engine needs, in the best variant for a device.
 *
 * @returns the files, or in `missing` sentences that say what was not found and what to try
 */
export function selectModelFiles(entries: readonly FileEntry[], options: SelectOptions): FileSelection {
  const paths = new Set(entries.map((entry) => entry.path));
  if (options.contract) return selectEncoder(paths, options.contract, options.dtype);
  if (options.file !== undefined) return selectGguf(paths, options.file);
  const checkpoint = selectCheckpoint(paths, options);
  if (options.base) return checkpoint;
  const select = (wanted: readonly Dtype[]) => selectTransformers(paths, wanted) ?? selectGenai(paths, wanted, options);
  const wanted = options.dtype ? [options.dtype] : PREFERENCE[options.device];
  const whole = options.device === 'CPU' && !options.dtype ? select(['fp16', 'fp32']) : null;
  const files = whole && isSmall(entries, whole) ? whole : select(wanted);
  if (files) return withSupport(files);
  if (!options.dtype && ('files' in checkpoint || checkpoint.missing)) return checkpoint;
  if (!options.dtype && [...paths].some(isGguf)) return selectGguf(paths, '');
  const others = DTYPES.filter((dtype) => !wanted.includes(dtype) && selectTransformers(paths, [dtype]));
  return { missing: missingGraph(paths, { wanted, others, checkpoint: 'files' in checkpoint }) };
}

/** Returns the selected files, or the text files that they lack. */
function withSupport(files: ModelFiles, required = REQUIRED[files.layout]): FileSelection {
  const lacking = required.filter((name) => !(name in files.support));
  return lacking.length > 0 ? { missing: `It has no ${lacking.join(' and ')}.` } : { files };
}

/** Number formats in which encoder models are read, best first. */
const ENCODER_DTYPES = ['fp32', 'fp16'] as const satisfies readonly Dtype[];

/**
 * Selects the graphs of an encoder model in floats. Published 8-bit graphs are not used, because rows that run together
 * would change each other's answers (measured).
 */
function selectEncoder(paths: ReadonlySet<string>, contract: EncoderContract, dtype: Dtype | undefined): FileSelection {
  const wanted = ENCODER_DTYPES.filter((one) => dtype === undefined || one === dtype);
  const support = supportIn(paths, '');
  for (const roles of graphRoles(contract)) {
    for (const format of wanted) {
      const found = roles.flatMap((role) => {
        const file = `${role}${DTYPE_SUFFIX[format]}.onnx`;
        const path = [`onnx/${file}`, file].find((candidate) => paths.has(candidate));
        return path === undefined ? [] : [[role, path] as const];
      });
      const [main] = found;
      if (!main || main[0] !== roles[0]) continue;
      const lacking = REQUIRED.encoder.filter((name) => !(name in support));
      if (lacking.length > 0) return { missing: `It has no ${lacking.join(' and ')}.` };
      const data = found.flatMap(([, path]) => externalData(paths, path));
      const files = { layout: 'encoder' as const, dtype: format, graph: main[1], roles: Object.fromEntries(found) };
      return { files: { ...files, data, support } };
    }
  }
  if (writesGraph(contract) && paths.has(SINGLE_FILE) && dtype === undefined) {
    if (!('tokenizer.json' in support)) return { missing: 'It has no tokenizer.json.' };
    return { files: { layout: 'encoder', dtype: null, graph: SINGLE_FILE, data: [], support } };
  }
  const there = [...paths].filter((path) => path.endsWith('.onnx')).sort();
  const has = there.length > 0 ? `It has ${there.slice(0, 8).join(', ')}.` : 'It has no ONNX file at all.';
  return {
    missing: `Looked for model.onnx and model_fp16.onnx, at the top and in onnx/. ${has} Encoder models need graphs in 32 or 16 bits: in published 8-bit graphs, rows that run together change each other's answers. Use a copy with such a file.`,
  };
}

/**
 * Selects a checkpoint without a graph: weights in one file or in shards, at the top or in the folder of a backbone, or
 * else an adapter. The sentence in `missing` is empty if there is none of these.
 */
function selectCheckpoint(paths: ReadonlySet<string>, { base }: Pick<SelectOptions, 'base'>): FileSelection {
  const support = supportIn(paths, '');
  const common = { layout: 'checkpoint' as const, dtype: null, support };
  const found: ModelFiles[] = [];
  let missing = '';
  for (const folder of ['', `${BACKBONE_FOLDER}/`]) {
    const config = folder === '' ? [] : [`${folder}config.json`];
    if (!config.every((path) => paths.has(path))) continue;
    if (paths.has(`${folder}${SINGLE_FILE}`)) {
      found.push({ ...common, graph: `${folder}${SINGLE_FILE}`, data: config });
      continue;
    }
    const shards = shardsOf(paths, folder);
    missing ||= shards.missing ?? '';
    if (shards.paths.length > 0) {
      found.push({ ...common, graph: `${folder}${INDEX_FILE}`, data: [...config, ...shards.paths] });
    }
  }
  const [files] = found;
  if (files) return withSupport(files, base ? ['config.json'] : REQUIRED.checkpoint);
  const adapter = ADAPTER_FOLDERS.map((folder) => `${folder}${ADAPTER_WEIGHTS}`).find((path) => paths.has(path));
  if (missing || base || adapter === undefined) return { missing };
  return withSupport({ ...common, graph: adapter, adapter: true, data: [] }, ['adapter_config.json']);
}

function isGguf(path: string): boolean {
  return path.endsWith(GGUF_SUFFIX) && !GGUF_ENCODER.test(path);
}

/**
 * Selects the GGUF file with this name, or whose name has this part; the only one for an empty name. Its text files are
 * those that were made from its metadata.
 */
function selectGguf(paths: ReadonlySet<string>, name: string): FileSelection {
  const all = [...paths].filter(isGguf).sort();
  const fitting = [
    all.filter((path) => path === name || path === `${name}${GGUF_SUFFIX}`),
    // `Q4_K` is the name of a file's form in `model-Q4_K.gguf`, and not in `model-Q4_K_M.gguf`.
    all.filter((path) => path.slice(0, -GGUF_SUFFIX.length).toLowerCase().split(/[-./]/u).includes(name.toLowerCase())),
    all.filter((path) => path.toLowerCase().includes(name.toLowerCase())),
  ].find((found) => found.length > 0);
  const whole = (fitting ?? []).filter((path) => !GGUF_PART.test(path));
  const [graph] = whole;
  if (graph !== undefined && whole.length === 1) {
    const folder = `${graph}${DERIVED_SUFFIX}/`;
    const support = TEXT_FILES.filter((text) => paths.has(`${folder}${text}`)).map((text) => [
      text,
      `${folder}${text}`,
    ]);
    return { files: { layout: 'gguf', dtype: null, graph, data: [], support: Object.fromEntries(support) } };
  }
  const named = (list: readonly string[]) =>
    `${list.slice(0, MOST_NAMED).join(', ')}${list.length > MOST_NAMED ? ` and ${list.length - MOST_NAMED} more` : ''}`;
  if (whole.length > 1) {
    const fit = name === '' ? 'It has several GGUF files' : `Several of its GGUF files fit "${name}"`;
    return { missing: `${fit}: ${named(whole)}. Name one of them, or the part in which it differs, with --file.` };
  }
  if (fitting && fitting.length > 0) {
    return { missing: `It has ${named(fitting)}, and a model in several files is not read. Use a file that is whole.` };
  }
  const has = all.length > 0 ? `It has ${named(all)}.` : 'It has no GGUF file at all.';
  return { missing: `None of its GGUF files is named "${name}". ${has}` };
}

/**
 * Finds the shards of a checkpoint in a folder, `model-00001-of-00003.safetensors` and so on.
 *
 * @returns their paths, in order, and in `missing` a sentence that says which are not there
 */
function shardsOf(paths: ReadonlySet<string>, folder: string): { paths: string[]; missing?: string } {
  if (!paths.has(`${folder}${INDEX_FILE}`)) return { paths: [] };
  const inside = [...paths].filter((path) => path.startsWith(folder)).map((path) => path.slice(folder.length));
  const found = inside.filter((name) => SHARD.test(name)).sort();
  const [first = ''] = found;
  const total = Number(SHARD.exec(first)?.[3] ?? 0);
  const all = Array.from({ length: total }, (_, index) => {
    return folder + first.replace(SHARD, `$1${String(index + 1).padStart(5, '0')}-of-$3.safetensors`);
  });
  const missing = all.filter((path) => !paths.has(path));
  if (found.length === 0)
    return { paths: [], missing: `It has ${folder}${INDEX_FILE}, but none of the files that it lists.` };
  if (missing.length === 0) return { paths: all };
  const some = `${missing.slice(0, 3).join(', ')}${missing.length > 3 ? ` and ${missing.length - 3} more` : ''}`;
  return { paths: [], missing: `It has ${found.length} of the ${total} files of its weights, but lacks ${some}.` };
}

/** Tells whether an unquantized variant has few enough weights to count as small. */
function isSmall(entries: readonly FileEntry[], { dtype, graph, data, parts }: ModelFiles): boolean {
  if (dtype !== 'fp16' && dtype !== 'fp32') return false;
  const weights = new Set([graph, ...data, ...Object.values(parts ?? {})]);
  const bytes = entries.reduce((sum, { path, size }) => sum + (weights.has(path) ? size : 0), 0);
  return bytes <= (dtype === 'fp16' ? 1 : 2) * SMALL_BYTES;
}

/** Returns the text files, by name, that an adapter takes from its base model: none if it has a tokenizer itself. */
export function inheritedFrom(base: ModelFiles, adapter: ModelFiles): [name: string, path: string][] {
  if ('tokenizer.json' in adapter.support) return [];
  return Object.entries(base.support).filter(([name]) => OF_TOKENIZER.has(name) && !(name in adapter.support));
}

/** Lists the paths of all selected files. */
export function pathsOf(files: ModelFiles): string[] {
  const { support, data, parts, roles, graph } = files;
  const graphs = [...Object.values(parts ?? {}), ...Object.values(roles ?? {}), graph];
  return [...new Set([...Object.values(support), ...data, ...graphs])];
}

/** Lists the paths of a checkpoint's configuration and weights. */
export function weightsOf({ support, data, graph }: ModelFiles): string[] {
  return [...(support['config.json'] ? [support['config.json']] : []), ...data, graph];
}

/**
 * Returns the path that a selected file gets in a folder that contains only this variant. Files are directly in that
 * folder; only graphs and weights in the layout of onnxruntime-genai keep their subfolder, because several graphs have
 * the same name, and so do the files of a backbone.
 */
export function pathInVariant({ layout, support }: ModelFiles, path: string): string {
  const name = Object.keys(support).find((one) => support[one] === path);
  if (name !== undefined) return name;
  if (path.startsWith(`${BACKBONE_FOLDER}/`)) return path;
  if (layout === 'gguf') return GGUF_FILE;
  return layout === 'genai' ? path.slice(folderOf(support[GENAI_CONFIG] ?? '').length) : baseName(path);
}

/** Tells whether the files have weights without a graph, which is written here. */
export function needsGraph({ layout, adapter, graph }: ModelFiles): boolean {
  return layout === 'encoder' ? graph === SINGLE_FILE : layout === 'checkpoint' && !adapter;
}

/** Returns `files` without the encoders of images and audio, except the encoder of the kind in `reads` (null: none). */
export function withEncoderFor(reads: MediaKind | null, files: ModelFiles): ModelFiles {
  const { parts, data } = files;
  if (!parts) return files;
  const unused = KINDS.flatMap((kind) => (kind === reads ? [] : (parts[kind] ?? [])));
  const read = reads === null ? undefined : parts[reads];
  return {
    ...files,
    parts: { embeddings: parts.embeddings, ...(reads && read !== undefined ? { [reads]: read } : {}) },
    data: data.filter((path) => !unused.some((graph) => path.startsWith(graph))),
  };
}

const KINDS = ['image', 'audio'] as const satisfies readonly MediaKind[];

function selectTransformers(paths: ReadonlySet<string>, wanted: readonly Dtype[]): ModelFiles | null {
  if (paths.has(GENAI_CONFIG)) return null;
  for (const dtype of wanted) {
    for (const folder of ['onnx/', '']) {
      const graph = `${folder}model${DTYPE_SUFFIX[dtype]}.onnx`;
      if (!paths.has(graph)) continue;
      return { layout: 'transformers', dtype, graph, data: externalData(paths, graph), support: supportIn(paths, '') };
    }
  }
  return selectParts(paths, wanted);
}

/**
 * Selects a model that is published in several graphs: a decoder, its token embeddings, and the encoder of its media. A
 * graph that is not published in the decoder's number format is used in the next best one.
 */
function selectParts(paths: ReadonlySet<string>, wanted: readonly Dtype[]): ModelFiles | null {
  const named = (name: string, dtypes: readonly Dtype[]) =>
    dtypes.find((dtype) => paths.has(`onnx/${name}${DTYPE_SUFFIX[dtype]}.onnx`));
  const dtype = named('decoder_model_merged', wanted);
  if (dtype === undefined) return null;
  const path = (name: string) => {
    const found = named(name, [dtype, ...wanted, ...DTYPES]);
    return found === undefined ? undefined : `onnx/${name}${DTYPE_SUFFIX[found]}.onnx`;
  };
  const graph = path('decoder_model_merged');
  const embeddings = path('embed_tokens');
  if (graph === undefined || embeddings === undefined) return null;
  const parts = partsOf(embeddings, { image: path(ENCODERS.image), audio: path(ENCODERS.audio) });
  const data = dataOf(paths, graph, parts);
  return { layout: 'transformers', dtype, graph, parts, data, support: supportIn(paths, '') };
}

function partsOf(
  embeddings: string,
  { image, audio }: { image: string | undefined; audio: string | undefined },
): ModelParts {
  return { embeddings, ...(image === undefined ? {} : { image }), ...(audio === undefined ? {} : { audio }) };
}

function dataOf(paths: ReadonlySet<string>, graph: string, parts: ModelParts): string[] {
  return [graph, ...Object.values(parts)].flatMap((file) => externalData(paths, file));
}

/**
 * Selects a model from the folders of onnxruntime-genai. Each folder contains a whole model and a `genai_config.json`,
 * often for one device and number format. A model in several graphs has one for embeddings.
 */
function selectGenai(
  paths: ReadonlySet<string>,
  wanted: readonly Dtype[],
  options: { device: Device; dtype?: Dtype },
): ModelFiles | null {
  const found: ModelFiles[] = [];
  for (const config of paths) {
    if (config !== GENAI_CONFIG && !config.endsWith(`/${GENAI_CONFIG}`)) continue;
    const folder = folderOf(config);
    const path = (name: GenaiGraph) => GENAI_GRAPHS[name].map((file) => folder + file).find((file) => paths.has(file));
    const embeddings = path('embedding');
    const graph = embeddings === undefined ? `${folder}model.onnx` : path('decoder');
    if (graph === undefined || !paths.has(graph)) continue;
    const dtype = dtypeOfFolder(folder);
    if (options.dtype && dtype !== options.dtype) continue;
    const files = { layout: 'genai' as const, dtype, graph, support: supportIn(paths, folder) };
    const parts =
      embeddings === undefined ? null : partsOf(embeddings, { image: path('vision'), audio: path('speech') });
    found.push(
      parts ? { ...files, parts, data: dataOf(paths, graph, parts) } : { ...files, data: externalData(paths, graph) },
    );
  }
  const rank = (files: ModelFiles): number => {
    const byDevice = GENAI_FOLDER[options.device].findIndex((pattern) => pattern.test(files.graph));
    const known = files.dtype === null ? wanted.length : wanted.indexOf(files.dtype);
    const byDtype = known < 0 ? wanted.length + 1 : known;
    return (byDevice < 0 ? 9 : byDevice) * 100 + byDtype;
  };
  return found.sort((a, b) => rank(a) - rank(b) || a.graph.localeCompare(b.graph))[0] ?? null;
}

/** Patterns of folder names in published repositories that suit a device, best first. */
const GENAI_FOLDER: Readonly<Record<Device, readonly RegExp[]>> = {
  CPU: [/cpu/i],
  GPU: [/cuda|gpu|directml|webgpu/i, /cpu/i],
  NPU: [/npu|qnn|vitis|openvino/i, /cpu/i],
};

function dtypeOfFolder(folder: string): Dtype | null {
  if (/int4|q4|awq|rtn/i.test(folder)) return 'q4';
  if (/int8|q8/i.test(folder)) return 'int8';
  if (/fp16/i.test(folder)) return 'fp16';
  return /fp32/i.test(folder) ? 'fp32' : null;
}

/** Returns the external data files of a graph: `<graph>_data`, `<graph>_data_1`, or `<graph>.data`. */
function externalData(paths: ReadonlySet<string>, graph: string): string[] {
  return [...paths]
    .filter((path) => path.startsWith(graph) && /^(_data(_\d+)?|\.data)$/.test(path.slice(graph.length)))
    .sort();
}

function supportIn(paths: ReadonlySet<string>, folder: string): Record<string, string> {
  const support: Record<string, string> = {};
  for (const name of TEXT_FILES) {
    const inside =
      name === TOOL_TEMPLATE_FILE ? [TEMPLATE_FOLDER] : name === 'adapter_config.json' ? ADAPTER_FOLDERS : [''];
    // Some genai repositories have these files only in their top folder.
    const candidates = [folder, ''].flatMap((outer) => inside.map((inner) => `${outer}${inner}${name}`));
    const path = [...candidates, ...(OTHER_PATHS[name] ?? [])].find((candidate) => paths.has(candidate));
    if (path) support[name] = path;
  }
  return support;
}

/**
 * Returns sentences that say which files of a model were looked for, which are there, and what to try.
 *
 * @param paths paths of all files of the model
 * @param formats.wanted number formats that were looked for
 * @param formats.others other number formats in which the model is there
 * @param formats.checkpoint true if there is a checkpoint without a graph, which has no number format to ask for
 */
function missingGraph(
  paths: ReadonlySet<string>,
  { wanted, others, checkpoint }: { wanted: readonly Dtype[]; others: readonly Dtype[]; checkpoint: boolean },
): string {
  const looked = wanted.map((dtype) => `onnx/model${DTYPE_SUFFIX[dtype]}.onnx`).join(', ');
  const graphs = [...paths].filter((path) => path.endsWith('.onnx')).sort();
  const there = graphs.length > 0 ? graphs : [...paths].filter((path) => WEIGHTS.test(path)).sort();
  const has =
    there.length > 0
      ? ` It has ${there.slice(0, 8).join(', ')}${there.length > 8 ? ` and ${there.length - 8} more` : ''}.`
      : ' It has no weights at all; a copy under onnx-community may.';
  const next =
    severalGraphs(paths, graphs) || onlyUnreadableFormats(graphs) || otherFormats(others) || withoutFormat(checkpoint);
  return `Looked for ${looked} (also at the top), for ${GENAI_CONFIG} with model.onnx beside it, and for model.safetensors.${has}${next}`;
}

/** Matches files of weights in formats other than ONNX. */
const WEIGHTS = /\.(?:safetensors|bin|pt|pth|gguf|h5|msgpack|ot)$/u;

/** Returns a sentence that says how to use a checkpoint; empty if there is none. */
function withoutFormat(checkpoint: boolean): string {
  return checkpoint ? ' Its weights are in safetensors, which is read as it is: leave out --dtype.' : '';
}

/** Returns a sentence that refuses a model whose graphs are all in formats that are not read; empty for any other. */
function onlyUnreadableFormats(graphs: readonly string[]): string {
  const formats = graphs.map((path) => /_(bnb4|uint8)\.onnx$/u.exec(path)?.[1]);
  if (formats.length === 0 || formats.includes(undefined)) return '';
  const named = [...new Set(formats)].sort().join(' and ');
  return ` Weights in ${named} are not read here. Use a copy of this model with a file in ${DTYPES.join(', ')}, such as one under onnx-community.`;
}

/** Returns a sentence that names other formats to ask for; empty if there are none. */
function otherFormats(others: readonly Dtype[]): string {
  return others.length > 0 ? ` Ask for another number format: --dtype ${others.join(' or ')}` : '';
}

/**
 * Returns a sentence that refuses a model of several graphs in the layout of onnxruntime-genai, and says what to use;
 * empty for any other model.
 */
function severalGraphs(paths: ReadonlySet<string>, graphs: readonly string[]): string {
  const folders = [...paths].filter((path) => path === GENAI_CONFIG || path.endsWith(`/${GENAI_CONFIG}`)).map(folderOf);
  const { decoder, embedding } = GENAI_GRAPHS;
  return folders.some((folder) => graphs.some((path) => path.startsWith(folder)))
    ? ` Its ${GENAI_CONFIG} describes several graphs, as for a model that reads images or audio. They are looked for at ${decoder.join(', ')} and ${embedding.join(', ')} only. Use a copy in the layout of transformers.js (onnx/decoder_model_merged.onnx), or a text model.`
    : '';
}

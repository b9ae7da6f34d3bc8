import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { MediaKind } from '../../lib/contract/conversation.ts';
import { property } from '../../lib/json/property.ts';
import { readGguf } from '../checkpoint/gguf/read-gguf.ts';
import { mergeLora } from '../checkpoint/lora.ts';
import { unpackMxfp4 } from '../checkpoint/mxfp4.ts';
import { INDEX_FILE, readCheckpoint, readSafetensors, SINGLE_FILE } from '../checkpoint/safetensors.ts';
import type { StoredTensor, WeightSource } from '../checkpoint/weight-source.ts';
import { readAdapter } from '../contracts/adapter.ts';
import type { DecisionContract, LastLayer } from '../contracts/contract.ts';
import { contractText } from '../contracts/contract-text.ts';
import { readContractFiles } from '../contracts/read-files.ts';
import type { Readout } from '../graph/decoder.ts';
import { ggufWeights } from '../graph/gguf.ts';
import { unusable } from '../onnx/unusable.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { GENAI_CONFIG, GENAI_GRAPHS, type GenaiGraph } from '../store/genai-config.ts';
import { ENCODERS } from '../store/media-models.ts';
import { ADAPTER_WEIGHTS, BACKBONE_FOLDER, GGUF_FILE } from '../store/model-files.ts';
import { loadTextModel } from '../text/text-model.ts';
import type { RequestedPrecision } from './choose-precision.ts';

/**
 * Suffixes of published model files, in the order of preference as a source for each group of precisions. The names are
 * those of onnx-community; `model.onnx` in the folder itself is the layout of onnxruntime-genai. Files in which all
 * activations of a run share one scale (`_quantized`, `_int8`, `_uint8`) come last, because branches then change the
 * answers of each other.
 */
const PREFERENCE: Record<'float' | 'small', readonly string[]> = {
  float: ['', '_fp16', '_q4', '_q4f16', '_int8', '_quantized', '_uint8'],
  small: ['_q4', '_q4f16', '', '_fp16', '_int8', '_quantized', '_uint8'],
};

/** Paths of a published model's graphs. */
export interface SourceGraphs {
  /** Language model. Its input is embeddings if `embeddings` is present, otherwise token ids. */
  model: string;
  /** Graph that computes the embeddings of token ids; absent if `model` contains it. */
  embeddings?: string;
}

/**
 * Tells whether a folder has the weights of a model without a graph, so that its graph is to be written (`graph/`).
 */
export function isCheckpoint(folder: string): boolean {
  if (graphsIn(folder).length > 0) return false;
  const files = ['', BACKBONE_FOLDER].flatMap((inner) =>
    [GGUF_FILE, SINGLE_FILE, INDEX_FILE].map((name) => join(inner, name)),
  );
  return files.some((file) => existsSync(join(folder, file)));
}

/**
 * Returns the paths of the published graphs in `folder` that are the best source for a precision. Throws
 * `engine_failed` if the folder has no model.
 */
export function sourceGraphs(folder: string, precision: Exclude<RequestedPrecision, 'auto'>): SourceGraphs {
  const genai = genaiGraphs(folder);
  if (genai) return genai;
  const files = graphsIn(folder);
  const best = (name: string) => bestOf(files, name, precision);
  const model = best('model');
  if (model) return { model };
  const [decoder, embeddings] = ['decoder_model_merged', 'embed_tokens'].map(best);
  if (decoder && embeddings) return { model: decoder, embeddings };
  const only = files.length === 1 ? files[0] : undefined;
  if (only) return { model: only };
  throw unusable(
    files.length === 0 ? 'there is no .onnx file in its folder' : 'there is no model.onnx among its files',
  );
}

/**
 * Returns the path of the published graph that computes features from images or audio (`kind`); undefined if the folder
 * has none.
 */
export function encoderGraph(folder: string, kind: MediaKind): string | undefined {
  if (genaiGraphs(folder)) return genaiGraph(folder, kind === 'image' ? 'vision' : 'speech');
  return bestOf(graphsIn(folder), ENCODERS[kind], 'keep');
}

/**
 * Returns the paths of the graphs of a model in several graphs in the layout of onnxruntime-genai; undefined for any
 * other model.
 */
function genaiGraphs(folder: string): Required<SourceGraphs> | undefined {
  if (!existsSync(join(folder, GENAI_CONFIG))) return undefined;
  const [model, embeddings] = [genaiGraph(folder, 'decoder'), genaiGraph(folder, 'embedding')];
  return model !== undefined && embeddings !== undefined ? { model, embeddings } : undefined;
}

function genaiGraph(folder: string, name: GenaiGraph): string | undefined {
  return GENAI_GRAPHS[name].map((file) => join(folder, file)).find((file) => existsSync(file));
}

/** Returns the path, among `files`, of the graph `name` that suits a precision best; undefined if there is none. */
function bestOf(
  files: readonly string[],
  name: string,
  precision: Exclude<RequestedPrecision, 'auto'>,
): string | undefined {
  const order = PREFERENCE[precision === 'int4' || precision === 'keep' ? 'small' : 'float'];
  return order.flatMap((suffix) => files.find((file) => basename(file) === `${name}${suffix}.onnx`) ?? [])[0];
}

/**
 * Returns the number of elements of an attention head (`head_size` of `genai_config.json`); undefined if the file or a
 * valid value is missing. Throws `engine_failed` if the file is too large or not JSON.
 */
export async function publishedHeadSize(folder: string): Promise<number | undefined> {
  const genai = await readBoundedJson(join(folder, 'genai_config.json'), CONFIG_BOUNDS);
  const size = property(property(property(genai, 'model'), 'decoder'), 'head_size');
  return typeof size === 'number' && Number.isInteger(size) && size > 0 ? size : undefined;
}

/** Lists the paths of the ONNX files of a model's folder: those in the folder itself, then those in `onnx/`. */
function graphsIn(folder: string): string[] {
  return [folder, join(folder, 'onnx')].flatMap(listOnnx);
}

function listOnnx(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.onnx'))
      .sort()
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Returns the folder of a checkpoint that has the configuration and the weights of its language model. */
export function weightsFolder(source: string): string {
  const backbone = join(source, BACKBONE_FOLDER);
  return existsSync(backbone) ? backbone : source;
}

/**
 * Locates the weights of a checkpoint, with its adapter added to its base model's if it has one. Throws `engine_failed`
 * for files that are damaged or do not fit each other, and `RefusedContract` for an adapter of an unknown kind.
 */
export async function sourceWeights(source: string): Promise<WeightSource> {
  const gguf = join(source, GGUF_FILE);
  if (existsSync(gguf)) return ggufWeights(readGguf(gguf));
  const base = unpackMxfp4(readCheckpoint(weightsFolder(source)));
  const adapter = join(source, ADAPTER_WEIGHTS);
  if (!existsSync(adapter)) return base;
  const files = await readContractFiles(new Set(readdirSync(source)), (name) => join(source, name));
  return mergeLora(base, readSafetensors(adapter), readAdapter(files).scale);
}

/**
 * Returns what the graph of a decision model must compute: the outputs of its own last layer, or the logits of its
 * labels, or the states that another network reads.
 */
export async function readoutOf(source: string, contract: DecisionContract): Promise<Readout> {
  if (contract.joint) return { states: true };
  if (contract.lastLayer) return linearReadout(contract.lastLayer(source));
  const text = await loadTextModel(source);
  const { labels } = contract.open(contractText(text, contract.maxTokens), source);
  if (!labels) throw new Error('a contract without a last layer names its labels');
  return { tokens: labels };
}

/** Epsilon of the normalisation before all known heads. */
const EPSILON = 1e-5;

function linearReadout({ width, normalised, weight, bias }: LastLayer): Readout {
  const tensor = (name: string, values: Float32Array, dims: number[]): StoredTensor => ({
    name: `readout/${name}`,
    dtype: 'F32',
    dims,
    data: { bytes: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) },
  });
  return {
    weight: tensor('weight', weight, [width, weight.length / width]),
    ...(bias ? { bias: tensor('bias', bias, [width]) } : {}),
    ...(normalised ? { norm: { epsilon: EPSILON } } : {}),
  };
}

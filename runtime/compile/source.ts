import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { unusable } from '../onnx/unusable.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import type { Precision } from './precision.ts';

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
  embeddings?: string;
  /** Graph that computes features from images or audio. */
  encoder?: string;
}

/**
 * Returns the published files that are the best source for a precision. Throws `engine_failed` if the folder has no
 * model.
 */
export function sourceGraphs(folder: string, precision: Exclude<Precision, 'auto'>): SourceGraphs {
  const files = [...listOnnx(folder, ''), ...listOnnx(folder, 'onnx')];
  const order = PREFERENCE[precision === 'int4' || precision === 'keep' ? 'small' : 'float'];
  const best = (name: string): string | undefined => {
    const found = order.flatMap((suffix) => files.find((file) => baseName(file) === `${name}${suffix}.onnx`) ?? [])[0];
    return found && join(folder, found);
  };
  const model = best('model');
  if (model) return { model };
  const [decoder, embeddings] = ['decoder_model_merged', 'embed_tokens'].map(best);
  const encoder = best('vision_encoder') ?? best('audio_encoder');
  if (decoder && embeddings) return { model: decoder, embeddings, ...(encoder ? { encoder } : {}) };
  const only = files.length === 1 ? files[0] : undefined;
  if (only) return { model: join(folder, only) };
  throw unusable(
    files.length === 0 ? 'there is no .onnx file in its folder' : 'there is no model.onnx among its files',
  );
}

/** Returns the size of an attention head that `genai_config.json` states; undefined if it states none. */
export async function publishedHeadSize(folder: string): Promise<number | undefined> {
  const genai = await readBoundedJson(join(folder, 'genai_config.json'), CONFIG_BOUNDS);
  const size = property(property(property(genai, 'model'), 'decoder'), 'head_size');
  return typeof size === 'number' && Number.isInteger(size) && size > 0 ? size : undefined;
}

function listOnnx(folder: string, inside: string): string[] {
  try {
    return readdirSync(join(folder, inside))
      .filter((name) => name.endsWith('.onnx'))
      .sort()
      .map((name) => (inside ? `${inside}/${name}` : name));
  } catch {
    return [];
  }
}

function baseName(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1);
}

/** Reads a member of a parsed JSON value; undefined if there is none. */
export function property(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? // A cast: the condition above has checked that the value is an object.
      (value as Record<string, unknown>)[key]
    : undefined;
}

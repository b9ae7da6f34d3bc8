import { DTYPE_SUFFIX, DTYPES, type Dtype } from './dtypes.ts';
import { folderOf, GENAI_CONFIG, GENAI_GRAPHS } from './genai-config.ts';

/**
 * Returns sentences that say which files of a model were looked for, which are there, and what to try.
 *
 * @param paths paths of all files of the model
 * @param formats.wanted number formats that were looked for
 * @param formats.others other number formats in which the model is there
 * @param formats.checkpoint true if there is a checkpoint without a graph, which has no number format to ask for
 */
export function missingGraph(
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

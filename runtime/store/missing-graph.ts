import { DTYPE_SUFFIX, DTYPES, type Dtype } from './dtypes.ts';
import { folderOf, GENAI_CONFIG, GENAI_GRAPHS } from './genai-config.ts';

/**
 * Returns sentences that say which files of a model were looked for, which are there, and what to try.
 *
 * @param paths paths of all files of the model
 * @param formats.wanted number formats that were looked for
 * @param formats.others other number formats in which the model is there
 */
export function missingGraph(
  paths: ReadonlySet<string>,
  { wanted, others }: { wanted: readonly Dtype[]; others: readonly Dtype[] },
): string {
  const looked = wanted.map((dtype) => `onnx/model${DTYPE_SUFFIX[dtype]}.onnx`).join(', ');
  const there = [...paths].filter((path) => path.endsWith('.onnx')).sort();
  const has =
    there.length > 0
      ? ` It has ${there.slice(0, 8).join(', ')}${there.length > 8 ? ` and ${there.length - 8} more` : ''}.`
      : ' It has no ONNX file at all; a copy under onnx-community may.';
  const next = severalGraphs(paths, there) || onlyUnreadableFormats(there) || otherFormats(others);
  return `Looked for ${looked} (also at the top), and for ${GENAI_CONFIG} with model.onnx beside it.${has}${next}`;
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

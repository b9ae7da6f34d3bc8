import {
  DataType,
  makeNode,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
  type ValueInfo,
} from '../format/model.ts';
import { unusable } from '../unusable.ts';

/** Name of the input for rows of media features, in a graph that `fuseEmbeddings` made. */
export const MEDIA_FEATURES = 'media_features';
/** Name of the input for the feature row of each token, in the same graph. */
export const MEDIA_ROWS = 'media_rows';

/**
 * Name of the constant with the widths of the vectors side by side in a row of features: the embedding, and one vector
 * for each deepstack layer.
 */
export const MEDIA_WIDTHS = 'assay/media/widths';

const EMBEDDINGS = 'inputs_embeds';
const TOKENS = 'input_ids';
const PREFIX = 'assay/embed_tokens/';

/**
 * Joins a decoder whose input is embeddings (`inputs_embeds`) with the graph that computes them from tokens, so that
 * the result has token ids as its input, like a text model. Two more inputs replace tokens by media: `media_features`
 * `[rows + 1, width]`, whose row 0 is zeros, and `media_rows` `[1, tokens]`, the feature row of each token, 0 for text.
 * If the decoder also adds features after its first layers (`deepstack_features_0` and so on, `[1, tokens, width]`,
 * Qwen3-VL), each row has all of them side by side. Other outputs of the embedding graph that the decoder reads by name
 * (`per_layer_inputs`, Gemma 4) are joined as they are: for media they are those of the token id 0, which is fed for
 * media.
 *
 * In the layout of onnxruntime-genai, the embedding graph has inputs for features, and replaces the embeddings of media
 * by them itself. These inputs become empty constants, and `media_features` are put in at the same node, so that what
 * the graph computes from its result is right for media, too.
 *
 * Changes and returns `decoder`. Throws `engine_failed` if the two graphs do not fit together.
 */
export function fuseEmbeddings(decoder: OnnxModel, embeddings: OnnxModel): OnnxModel {
  const { graph } = decoder;
  const input = graph.inputs.find(({ name }) => name === EMBEDDINGS);
  const width = input?.dims.at(-1);
  const { inputs: given, outputs } = embeddings.graph;
  const tokens = given.find(({ name }) => name === TOKENS) ?? given[0];
  const made = outputs.find(({ name }) => name === EMBEDDINGS) ?? outputs[0];
  if (!input || !tokens || !made) throw unusable('its decoder does not read the embeddings that embed_tokens makes');
  if (typeof width !== 'number') throw unusable('its decoder does not say how wide its embeddings are');

  const renamed = (name: string): string => (name === '' || name === tokens.name ? name : `${PREFIX}${name}`);
  const features = given.filter((info) => info !== tokens).map(noRows);
  for (const tensor of [...embeddings.graph.initializers.values(), ...features]) {
    const name = renamed(tensor.name);
    graph.initializers.set(name, { ...tensor, name });
  }
  const rename = (node: OnnxNode): OnnxNode => ({
    ...node,
    name: renamed(node.name),
    inputs: node.inputs.map(renamed),
    outputs: node.outputs.map(renamed),
  });
  const deep = deepstackNames(graph.inputs.map(({ name }) => name));
  const mix = (text: string, to: string) => mixNodes({ text: renamed(text), to, deep, dataType: input.dataType });
  const merges = mergesOf(embeddings.graph.nodes, features);
  const lookup = embeddings.graph.nodes.flatMap((node) => {
    if (!merges.includes(node)) return [rename(node)];
    const [output = ''] = node.outputs;
    const [, , text = ''] = node.inputs;
    if (node !== merges.at(-1)) return [makeNode('Identity', [renamed(text)], [renamed(output)])];
    return [...mix(text, MIXED), makeNode('Cast', [MIXED], [renamed(output)], { to: made.dataType })];
  });
  const last =
    merges.length > 0
      ? [makeNode('Cast', [renamed(made.name)], [EMBEDDINGS], { to: input.dataType })]
      : mix(made.name, EMBEDDINGS);
  const joined = graph.inputs.flatMap((to) => {
    const from = to === input ? undefined : outputs.find((output) => output !== made && output.name === to.name);
    return from ? [{ to, node: makeNode('Cast', [renamed(from.name)], [to.name], { to: to.dataType }) }] : [];
  });
  if (features.length > 0 && merges.length === 0 && joined.length > 0)
    throw unusable('its graph for embeddings puts features in the place of media in a way that is not known');
  graph.nodes.unshift(...lookup, ...last, ...joined.map(({ node }) => node));
  const widths = BigInt64Array.from([width, ...deep.map(() => width)], BigInt);
  graph.initializers.set(MEDIA_WIDTHS, makeTensor(MEDIA_WIDTHS, [widths.length], widths));
  graph.initializers.set(ZERO, makeTensor(ZERO, [1], BigInt64Array.of(0n)));
  graph.initializers.set(LAST_AXIS, makeTensor(LAST_AXIS, [1], BigInt64Array.of(-1n)));
  const perToken = ['batch_size', 'sequence_length'];
  graph.inputs = [
    { name: tokens.name, dataType: tokens.dataType, dims: perToken },
    { name: MEDIA_FEATURES, dataType: input.dataType, dims: ['media_rows', width * widths.length] },
    { name: MEDIA_ROWS, dataType: DataType.int64, dims: perToken },
    ...graph.inputs.filter(
      (info) => info !== input && !deep.includes(info.name) && !joined.some(({ to }) => to === info),
    ),
  ];
  for (const [domain, version] of embeddings.opsets) {
    decoder.opsets.set(domain, Math.max(version, decoder.opsets.get(domain) ?? 0));
  }
  return decoder;
}

/** Returns an empty tensor `[0, width]`, which replaces an input for features of media, `[features, width]`. */
function noRows({ name, dims, dataType }: ValueInfo): Tensor {
  const [, width] = dims;
  if (dims.length !== 2 || typeof width !== 'number')
    throw unusable(`its graph for embeddings has the input "${name}", which is not known`);
  return { name, dims: [0, width], dataType, data: { bytes: new Uint8Array(0) } };
}

/**
 * Returns the nodes of an embedding graph that put features in the place of media (`Where`), in order: each takes the
 * embeddings of text, or the result of the one before it, as its last input.
 */
function mergesOf(nodes: readonly OnnxNode[], features: readonly Tensor[]): OnnxNode[] {
  const reached = new Set(features.map(({ name }) => name));
  return nodes.filter(({ op, inputs, outputs }) => {
    if (!inputs.some((name) => reached.has(name))) return false;
    const [, chosen = '', other = ''] = inputs;
    if (op === 'Where' && reached.has(chosen) && !reached.has(other)) return true;
    for (const name of outputs) reached.add(name);
    return false;
  });
}

/**
 * Returns those of `names` that are names of deepstack features (`deepstack_features_<layer>`), in the order of the
 * layers.
 */
export function deepstackNames(names: readonly string[]): string[] {
  const layer = (name: string) => Number(/^deepstack_features_(\d{1,3})$/u.exec(name)?.[1] ?? -1);
  return names.filter((name) => layer(name) >= 0).sort((one, other) => layer(one) - layer(other));
}

const ZERO = 'assay/media/zero';
const LAST_AXIS = 'assay/media/last_axis';

const ALL = 'assay/media/all';
const ROWS = 'assay/media/rows';
const IS_MEDIA = 'assay/media/is_media';
const COLUMN = 'assay/media/column';
const TEXT = 'assay/media/text';
const MIXED = 'assay/media/mixed';

/**
 * Returns the nodes that compute the value `to`, of the type `dataType` (the feature row of a token that stands for
 * media, the embedding `text` of any other), and the deepstack features (zeros for text).
 */
function mixNodes(parts: { text: string; to: string; deep: readonly string[]; dataType: number }): OnnxNode[] {
  const { text, to, deep, dataType } = parts;
  return [
    makeNode('Cast', [text], [TEXT], { to: dataType }),
    makeNode('Gather', [MEDIA_FEATURES, MEDIA_ROWS], [deep.length > 0 ? ALL : ROWS]),
    ...(deep.length > 0 ? [makeNode('Split', [ALL, MEDIA_WIDTHS], [ROWS, ...deep], { axis: -1 })] : []),
    makeNode('Greater', [MEDIA_ROWS, ZERO], [IS_MEDIA]),
    makeNode('Unsqueeze', [IS_MEDIA, LAST_AXIS], [COLUMN]),
    makeNode('Where', [COLUMN, ROWS, TEXT], [to]),
  ];
}

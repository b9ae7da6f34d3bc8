import { DataType, type Model, makeNode, makeTensor, type Node } from './model.ts';
import { unusable } from './unusable.ts';

/** Names of the inputs for media of a graph that `fuseEmbeddings` made. */
export const MEDIA_FEATURES = 'media_features';
export const MEDIA_ROWS = 'media_rows';

const EMBEDDINGS = 'inputs_embeds';
const PREFIX = 'assay/embed_tokens/';

/**
 * Joins a decoder whose input is embeddings (`inputs_embeds`) with the graph that computes them from tokens, so that
 * the result has token ids as its input, like a text model. Two more inputs replace tokens by media: `media_features`
 * `[rows + 1, width]`, whose row 0 is unused, and `media_rows` `[1, tokens]`, the feature row of each token, 0 for
 * text. Changes and returns `decoder`. Throws `engine_failed` if the two graphs do not fit together.
 */
export function fuseEmbeddings(decoder: Model, embeddings: Model): Model {
  const { graph } = decoder;
  const input = graph.inputs.find(({ name }) => name === EMBEDDINGS);
  const width = input?.dims.at(-1);
  const tokens = embeddings.graph.inputs.find(({ name }) => !embeddings.graph.initializers.has(name));
  const [made] = embeddings.graph.outputs;
  if (!input || !tokens || !made) throw unusable('its decoder does not read the embeddings that embed_tokens makes');
  if (typeof width !== 'number') throw unusable('its decoder does not say how wide its embeddings are');

  const renamed = (name: string): string => (name === '' || name === tokens.name ? name : `${PREFIX}${name}`);
  for (const tensor of embeddings.graph.initializers.values()) {
    const name = renamed(tensor.name);
    graph.initializers.set(name, { ...tensor, name });
  }
  const lookup = embeddings.graph.nodes.map(
    (node): Node => ({
      ...node,
      name: renamed(node.name),
      inputs: node.inputs.map(renamed),
      outputs: node.outputs.map(renamed),
    }),
  );
  graph.nodes.unshift(...lookup, ...mixNodes(renamed(made.name), input.dataType, made.dataType !== input.dataType));
  graph.initializers.set(ZERO, makeTensor(ZERO, [1], BigInt64Array.of(0n)));
  graph.initializers.set(LAST_AXIS, makeTensor(LAST_AXIS, [1], BigInt64Array.of(-1n)));
  const perToken = ['batch_size', 'sequence_length'];
  graph.inputs = [
    { name: tokens.name, dataType: tokens.dataType, dims: perToken },
    { name: MEDIA_FEATURES, dataType: input.dataType, dims: ['media_rows', width] },
    { name: MEDIA_ROWS, dataType: DataType.int64, dims: perToken },
    ...graph.inputs.filter((info) => info !== input),
  ];
  for (const [domain, version] of embeddings.opsets) {
    decoder.opsets.set(domain, Math.max(version, decoder.opsets.get(domain) ?? 0));
  }
  return decoder;
}

const ZERO = 'assay/media/zero';
const LAST_AXIS = 'assay/media/last_axis';

const MIXED = ['assay/media/rows', 'assay/media/is_media', 'assay/media/column', 'assay/media/text'] as const;

/**
 * Returns the nodes that compute `inputs_embeds`: the feature row for media, otherwise the embedding of the text token.
 */
function mixNodes(text: string, dataType: number, cast: boolean): Node[] {
  const [rows, isMedia, column, same] = MIXED;
  return [
    ...(cast ? [makeNode('Cast', [text], [same], { to: dataType })] : []),
    makeNode('Gather', [MEDIA_FEATURES, MEDIA_ROWS], [rows]),
    makeNode('Greater', [MEDIA_ROWS, ZERO], [isMedia]),
    makeNode('Unsqueeze', [isMedia, LAST_AXIS], [column]),
    makeNode('Where', [column, rows, cast ? same : text], [EMBEDDINGS]),
  ];
}

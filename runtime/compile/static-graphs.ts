import { at } from '../../lib/at.ts';
import { constantMatrices } from '../onnx/format/constants.ts';
import {
  attribute,
  DataType,
  type Graph,
  makeNode,
  type OnnxModel,
  type OnnxNode,
  type ValueInfo,
} from '../onnx/format/model.ts';
import { attentionNodes, attentionWindow, type GraphLayout } from '../onnx/layout.ts';
import {
  commonOperators,
  lookedUp,
  partOf,
  type RotaryTable,
  rotaryRowsName,
  rotaryTables,
} from '../onnx/rewrites/static/common-operators.ts';
import {
  checkAttention,
  type KvType,
  plainAttention,
  type StaticAttention,
  type StaticShape,
} from '../onnx/rewrites/static/plain-attention.ts';
import { unusable } from '../onnx/unusable.ts';
import type { StaticGraphs } from './manifest.ts';
import { HEAD_ROWS } from './static-shapes.ts';

export interface StaticModel {
  graphs: { file: string; model: OnnxModel }[];
  masks: { name: string; window: number | null }[];
  manifest: StaticGraphs;
}

const POSITIONS = 'position_ids';

/**
 * Splits a model into three kinds of static graphs: the lookup of embeddings and rotary tables, which runs on the CPU
 * for any number of tokens; the layers, for each type of KV one graph for each shape and one for all shapes; and the
 * head after the last attention, for the rows whose logits are needed. All share the weights. Throws `engine_failed` if
 * the model cannot be split.
 *
 * @param rows name of the input by which `gatherRows` selects rows; the Gather nodes that read it are the border
 *   between layers and head
 */
export function staticGraphs(
  model: OnnxModel,
  layout: GraphLayout,
  rows: string,
  shapes: readonly StaticShape[],
): StaticModel {
  const { graph } = model;
  const attention = attentionNodes(graph, layout);
  if (!attention) throw unusable('it has no fused attention (GroupQueryAttention), which static graphs are made from');
  for (const [layer, node] of attention.entries()) checkAttention(node, layer);
  commonOperators(graph);

  const lookup = lookedUp(graph, layout.tokens);
  const embeddings = used(graph, lookup.nodes, lookup.values).map((name) => ({
    name,
    width: widthOf(graph, lookup.nodes),
  }));
  const rotary = rotaryTables(graph, layout, attention);
  const masks = maskInputs(attention);
  const cuts = graph.nodes.filter((node) => node.op === 'Gather' && node.inputs[1] === rows);
  const head = cuts.map((node) => ({
    name: at(node.outputs, 0),
    from: at(node.inputs, 0),
    width: rowWidth(attention, layout, at(node.inputs, 0), at(embeddings, 0).width),
  }));

  const layers = attention.map((node, index): StaticAttention => {
    const [cos, sin] = [node.inputs[7], node.inputs[8]];
    const rotated = rotary.find(({ table }) => table === cos)?.rotated ?? 0;
    return {
      node,
      kv: at(layout.kv, index),
      mask: maskName(attentionWindow(node)),
      ...(attribute(node, 'do_rotary')
        ? { rotary: { cos: rotaryRowsName(cos!), sin: rotaryRowsName(sin!), rotated } }
        : {}),
    };
  });
  const bodiesWith = (kvType: KvType) =>
    shapes.map((shape) => ({
      file: `body-${shape.chunk}-${shape.past}${kvType === 'float16' ? '-half' : ''}.onnx`,
      shape,
      model: bodyOf(model, layout, layers, shape, kvType, { embeddings, rotary, masks, head }),
    }));
  const [bodies, halfBodies] = [bodiesWith('float32'), bodiesWith('float16')];
  const anyShape = (kvType: KvType) => ({
    file: `body-any${kvType === 'float16' ? '-half' : ''}.onnx`,
    model: bodyOf(model, layout, layers, 'any', kvType, { embeddings, rotary, masks, head }),
  });
  const [any, anyHalf] = [anyShape('float32'), anyShape('float16')];
  return {
    graphs: [
      { file: 'lookup.onnx', model: lookupOf(model, layout.tokens, embeddings, rotary) },
      ...bodies,
      ...halfBodies,
      any,
      anyHalf,
      { file: 'head.onnx', model: headOf(model, layout, head) },
    ],
    masks,
    manifest: {
      embeddings,
      rotary: rotary.map(({ table, width }) => ({ name: rotaryRowsName(table), width })),
      kvType: 'float32',
      bodies: bodies.map(({ file, shape }) => ({ graph: file, ...shape })),
      halfBodies: halfBodies.map(({ file, shape }) => ({ graph: file, ...shape })),
      anyShape: { float32: any.file, float16: anyHalf.file },
      head: { graph: 'head.onnx', rows: HEAD_ROWS, inputs: head },
    },
  };
}

type Cuts = Pick<StaticGraphs, 'embeddings'> & {
  rotary: RotaryTable[];
  masks: StaticModel['masks'];
  head: StaticGraphs['head']['inputs'];
};

/** Returns the graph of the layers for one shape, or for all: from the embeddings to the values that the head reads. */
function bodyOf(
  model: OnnxModel,
  layout: GraphLayout,
  layers: readonly StaticAttention[],
  shape: StaticShape | 'any',
  kvType: KvType,
  { embeddings, rotary, masks, head }: Cuts,
): OnnxModel {
  const [chunk, past, all] =
    shape === 'any' ? ['chunk', 'past', 'all'] : [shape.chunk, shape.past, shape.past + shape.chunk];
  const cells = (name: string, heads: number, count: number | string, headSize: number): ValueInfo => ({
    name,
    dataType: kvType === 'float16' ? DataType.float16 : DataType.float,
    dims: [1, heads, count, headSize],
  });
  const plain = new Map(layers.map((layer) => [layer.node, plainAttention(model.graph, layer, shape, kvType)]));
  const nodes = model.graph.nodes.flatMap((node) => plain.get(node) ?? [node]);
  const kv = layout.kv.flatMap((layer) => layer.past.map((name) => cells(name, layer.heads, past, layer.headSize)));
  const fresh = layout.kv.flatMap((layer) =>
    layer.present.map((name) => cells(name, layer.heads, chunk, layer.headSize)),
  );
  const inputs = [
    ...embeddings.map(({ name, width }) => float(name, [1, chunk, width])),
    ...masks.map(({ name }) => float(name, [1, 1, chunk, all])),
    ...rotary.map(({ table, width }) => float(rotaryRowsName(table), [1, 1, chunk, width])),
    ...kv,
  ];
  const outputs = [...head.map(({ from, width }) => float(from, [1, chunk, width])), ...fresh];
  return partOf(model, nodes, inputs, outputs);
}

function headOf(model: OnnxModel, layout: GraphLayout, inputs: StaticGraphs['head']['inputs']): OnnxModel {
  const given = inputs.map(({ name, width }) => float(name, [1, HEAD_ROWS, width]));
  return partOf(model, model.graph.nodes, given, [float(layout.logits, [1, HEAD_ROWS, layout.vocabSize])]);
}

/** Returns the graph that looks up embeddings by token id and rotary rows by position, for any number of tokens. */
function lookupOf(
  model: OnnxModel,
  tokens: string,
  embeddings: StaticGraphs['embeddings'],
  rotary: readonly RotaryTable[],
): OnnxModel {
  const ids = (name: string): ValueInfo => ({ name, dataType: DataType.int64, dims: [1, 'tokens'] });
  const tables = rotary.map(({ table, wide }) => makeNode('Gather', [wide, POSITIONS], [rotaryRowsName(table)]));
  const outputs = [...embeddings, ...rotary.map(({ table, width }) => ({ name: rotaryRowsName(table), width }))];
  return partOf(
    model,
    [...model.graph.nodes, ...tables],
    [ids(tokens), ...(rotary.length > 0 ? [ids(POSITIONS)] : [])],
    outputs.map(({ name, width }) => float(name, [1, 'tokens', width])),
  );
}

function maskInputs(attention: readonly OnnxNode[]): StaticModel['masks'] {
  const windows = new Set(attention.map(attentionWindow));
  return Array.from(windows, (window) => ({ name: maskName(window), window }));
}

const maskName = (window: number | null): string => (window === null ? 'tree_mask' : `tree_mask_${window}`);

/**
 * Returns the names of those `values` that nodes outside of the lookup read. Throws `engine_failed` if there are none.
 *
 * @param makers nodes of the lookup
 * @param values names of the values that the lookup computes
 */
function used(graph: Graph, makers: readonly OnnxNode[], values: ReadonlySet<string>): string[] {
  const inside = new Set(makers);
  const read = new Set(graph.nodes.filter((node) => !inside.has(node)).flatMap((node) => node.inputs));
  const found = [...values].filter((value) => read.has(value));
  if (found.length === 0) throw unusable('its embeddings are not looked up in a table, which has no static form');
  return found;
}

/**
 * Returns the width of the embeddings: the number of columns of their table. For a block-quantized table, that is the
 * number of columns of its scales times the block size.
 */
function widthOf(graph: Graph, nodes: readonly OnnxNode[]): number {
  const node = nodes.find(({ op }) => op === 'Gather' || op === 'GatherBlockQuantized');
  const blocks = node?.op === 'GatherBlockQuantized' ? attribute(node, 'block_size') : undefined;
  const found = constantMatrices(graph)(node?.inputs[blocks === undefined ? 0 : 2] ?? '');
  const columns = found?.tensor.dims[found.transposed ? 0 : 1];
  if (!columns) throw unusable('its embeddings are not looked up in a table, which has no static form');
  return typeof blocks === 'number' ? columns * blocks : columns;
}

/** Returns the width of a value that the head reads: of an attention output, or of the residual stream. */
function rowWidth(attention: readonly OnnxNode[], layout: GraphLayout, name: string, stream: number): number {
  const layer = attention.findIndex(({ outputs }) => outputs[0] === name);
  const heads = layer < 0 ? undefined : attribute(at(attention, layer), 'num_heads');
  return typeof heads === 'number' ? heads * at(layout.kv, layer).headSize : stream;
}

function float(name: string, dims: ValueInfo['dims']): ValueInfo {
  return { name, dataType: DataType.float, dims };
}

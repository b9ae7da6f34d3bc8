import type { DeviceCuts } from '../graph/graph-builder.ts';
import { DataType, type Graph, type OnnxModel, type ValueInfo } from '../onnx/format/model.ts';
import { prune } from '../onnx/format/subgraph.ts';
import type { GraphLayout } from '../onnx/layout.ts';
import type { StaticGraphs } from './manifest.ts';
import { HEAD_ROWS, type StaticShape } from './static-shapes.ts';

/** Holds a graph for devices that is not cut yet. */
export interface DeviceModel {
  model: OnnxModel;
  cuts: DeviceCuts;
}

/**
 * Cuts a model into three kinds of static graphs: the lookup of embeddings and rotary tables, which runs on the CPU for
 * any number of tokens; the layers, for each type of KV one graph for each shape and one for all shapes; and the head,
 * for the rows whose logits are needed. All share the weights.
 *
 * @param floats the model with keys and values in 32 bits
 * @param halves the same with 16 bits
 */
export function staticGraphs(
  floats: DeviceModel,
  halves: DeviceModel,
  layout: GraphLayout,
  shapes: readonly StaticShape[],
): { graphs: { file: string; model: OnnxModel }[]; manifest: StaticGraphs } {
  const { embeddings, positional, head } = floats.cuts;
  const lookup = [...embeddings, ...positional].map((value) => float(value, [1, 'tokens']));
  const rows = head.map((value) => float(value, [1, HEAD_ROWS]));
  const logits = float({ name: layout.logits, width: layout.vocabSize }, [1, HEAD_ROWS]);
  const bodiesOf = (from: DeviceModel, suffix: string) => ({
    each: shapes.map((shape) => ({
      file: `body-${shape.chunk}-${shape.past}${suffix}.onnx`,
      shape,
      model: bodyOf(from, layout, shape),
    })),
    any: { file: `body-any${suffix}.onnx`, model: bodyOf(from, layout, null) },
  });
  const [full, half] = [bodiesOf(floats, ''), bodiesOf(halves, '-half')];
  const listed = ({ each }: typeof full) => each.map(({ file, shape }) => ({ graph: file, ...shape }));
  return {
    graphs: [
      { file: 'lookup.onnx', model: partOf(floats.model, floats.model.graph.inputs, lookup) },
      ...[...full.each, ...half.each, full.any, half.any].map(({ file, model }) => ({ file, model })),
      { file: 'head.onnx', model: partOf(floats.model, rows, [logits]) },
    ],
    manifest: {
      embeddings,
      rotary: positional,
      kvType: 'float32',
      bodies: listed(full),
      halfBodies: listed(half),
      anyShape: { float32: full.any.file, float16: half.any.file },
      head: { graph: 'head.onnx', rows: HEAD_ROWS, inputs: head },
    },
  };
}

/** Returns the graph of the layers for one shape, or for all: from the embeddings to the values that the head reads. */
function bodyOf({ model, cuts }: DeviceModel, { kv }: GraphLayout, shape: StaticShape | null): OnnxModel {
  const { chunk, past, all } = shape
    ? { ...shape, all: shape.past + shape.chunk }
    : { chunk: 'chunk', past: 'past', all: 'all' };
  const dataType = cuts.kvType === 'float16' ? DataType.float16 : DataType.float;
  const cells = (part: 'past' | 'present', count: number | string) =>
    kv.flatMap((layer) =>
      layer[part].map((name) => ({ name, dataType, dims: [1, layer.heads, count, layer.headSize] })),
    );
  const inputs = [
    ...cuts.embeddings.map((value) => float(value, [1, chunk])),
    ...cuts.masks.map(({ name }) => float({ name, width: all }, [1, 1, chunk])),
    ...cuts.positional.map((value) => float(value, [1, 1, chunk])),
    ...cells('past', past),
  ];
  const outputs = [
    ...cuts.head.map(({ from, width }) => float({ name: from, width }, [1, chunk])),
    ...cells('present', chunk),
  ];
  return partOf(model, inputs, outputs);
}

/** Returns the part of a graph that computes `outputs` from `inputs`. */
function partOf({ graph, ...model }: OnnxModel, inputs: ValueInfo[], outputs: ValueInfo[]): OnnxModel {
  const given = new Set(inputs.map(({ name }) => name));
  const part: Graph = {
    ...{ inputs, outputs, rest: graph.rest },
    nodes: graph.nodes.filter((node) => !node.outputs.some((output) => given.has(output))),
    initializers: new Map(graph.initializers),
  };
  prune(part);
  return { ...model, graph: part };
}

function float({ name, width }: { name: string; width: number | string }, dims: ValueInfo['dims']): ValueInfo {
  return { name, dataType: DataType.float, dims: [...dims, width] };
}

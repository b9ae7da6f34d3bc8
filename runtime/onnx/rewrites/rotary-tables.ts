import {
  DataType,
  dataLength,
  decodeNode,
  type Graph,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
} from '../format/model.ts';
import { constantOf, readTensor } from '../format/read-model.ts';
import { readAll, readPieces } from '../format/tensor-data.ts';
import { fieldsOf, memorySource, wireText } from '../format/wire.ts';
import { unusable } from '../unusable.ts';

/**
 * Edits the graph of a LongRoPE model (Phi-3 and Phi-4-mini) so that it always uses the same one of its two sets of
 * rotary tables. Leaves other models unchanged. The published graph selects by the length of the whole sequence, so the
 * result for a token would depend on the branches beside it, and the cached KV of a prefix on the text that followed it
 * earlier. If prompts of `maxPromptLen` tokens fit the tables for short texts, these are used and limit the context;
 * otherwise the tables for long texts are used for all texts. vLLM selects the same way, by its `max_model_len`
 * (`Phi3LongRoPEScaledRotaryEmbedding`).
 *
 * @throws AssayError `engine_failed` if the tables are not constants, or are selected by something other than the
 *   length
 */
export function chooseRotaryTables({ graph }: OnnxModel, maxPromptLen: number): void {
  const tables = new Set(
    graph.nodes.filter(({ op }) => op === 'GroupQueryAttention').flatMap(({ inputs }) => inputs.slice(7, 9)),
  );
  for (const node of [...graph.nodes]) {
    if (node.op !== 'If' || !node.outputs.some((output) => tables.has(output))) continue;
    const branch = maxPromptLen > longestShortText(graph, node) ? 'then_branch' : 'else_branch';
    const constants = constantOutputs(node, branch);
    for (const [index, name] of node.outputs.entries()) {
      const table = constants[index];
      if (!table) throw unusable('it computes its rotary tables while it runs');
      graph.initializers.set(name, { ...table, name });
    }
    graph.nodes = graph.nodes.filter((other) => other !== node);
  }
}

/**
 * Returns the number of tokens above which the graph uses the tables of `then_branch`: the constant in `Greater(length,
 * constant)`.
 */
function longestShortText(graph: Graph, choice: OnnxNode): number {
  const producer = (name: string | undefined) => graph.nodes.find(({ outputs }) => outputs.includes(name ?? ''));
  const condition = producer(choice.inputs[0]);
  const limit = condition?.inputs[1];
  const constant = graph.initializers.get(limit ?? '') ?? constantOf(producer(limit));
  if (condition?.op !== 'Greater' || constant?.dataType !== DataType.int64) {
    throw unusable('it chooses its rotary tables by something other than the length of the text');
  }
  return Number(new BigInt64Array(readAll(constant).buffer)[0]);
}

/** Returns the outputs of a subgraph in order: the tensor of each constant output, undefined for any other. */
function constantOutputs(node: OnnxNode, branch: string): (Tensor | undefined)[] {
  const subgraph = node.attributes.get(branch)?.find(({ no }) => no === 6);
  const fields = subgraph ? fieldsOf(subgraph.bytes) : [];
  const constants = new Map<string, Tensor | undefined>();
  for (const { no, bytes } of fields) {
    if (no === 1) {
      const inner = decodeNode(bytes);
      constants.set(inner.outputs[0] ?? '', constantOf(inner));
    } else if (no === 5) {
      const tensor = readTensor(memorySource(bytes), { start: 0, end: bytes.length }, null);
      constants.set(tensor.name, tensor);
    }
  }
  const outputs = fields.filter(({ no }) => no === 12).map(({ bytes }) => fieldsOf(bytes).find(({ no }) => no === 1));
  return outputs.map((name) => name && constants.get(wireText(name.bytes)));
}

/**
 * Number of rows to add to a rotary table, for the cells that the packed branches of a job may need after the longest
 * prompt: suffixes and answers (`Limits.cells` of the engine, three quarters of these rows), copies of cells, and
 * drafts.
 */
export const SPARE_ROWS = 16_384;

/**
 * Adds rows to the rotary tables for packed branches. GroupQueryAttention requires a row for every cell of the
 * sequence, and branches side by side use more cells than the model has positions. Positions come from `position_ids`,
 * so the added rows are never read. Source: onnxruntime, `group_query_attention_helper.h` ("cos_cache dimension 0 shall
 * not be less than total_sequence_length").
 */
export function padRotaryTables({ graph }: OnnxModel, attention: readonly OnnxNode[]): void {
  for (const name of new Set(attention.flatMap((node) => node.inputs.slice(7, 9)))) {
    const table = graph.initializers.get(name);
    if (table?.dims.length !== 2) continue;
    // A cast: the line before has checked that there are two.
    const [rows, columns] = table.dims as [number, number];
    const length = dataLength(table.data);
    const spare = (length / rows) * SPARE_ROWS;
    const { pieces } = readPieces(table.data);
    graph.initializers.set(name, {
      ...table,
      dims: [rows + SPARE_ROWS, columns],
      data: {
        length: length + spare,
        *pieces() {
          yield* pieces();
          yield new Uint8Array(spare);
        },
      },
    });
  }
}

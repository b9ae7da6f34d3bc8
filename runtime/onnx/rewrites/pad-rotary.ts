import { dataLength, type OnnxModel, type OnnxNode } from '../format/model.ts';
import { readPieces } from '../format/tensor-data.ts';

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

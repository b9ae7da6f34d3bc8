import { dataLength, type Model, type Node } from './model.ts';
import { readPieces } from './tensor-data.ts';

/** Columns that the packed branches of one job may take behind the longest prompt: their suffixes and what they say. */
const SPARE_ROWS = 16_384;

/**
 * Makes the rotary tables long enough for packed branches. GroupQueryAttention wants a row for every column of the
 * sequence, and branches side by side take more columns than the model has positions; the positions themselves come
 * from `position_ids`, so that the rows added here are never read. Source: onnxruntime,
 * `group_query_attention_helper.h` ("cos_cache dimension 0 shall not be less than total_sequence_length").
 */
export function padRotaryTables({ graph }: Model, attention: readonly Node[]): void {
  for (const name of new Set(attention.flatMap((node) => node.inputs.slice(7, 9)))) {
    const table = graph.initializers.get(name);
    if (table?.dims.length !== 2) continue;
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

import { at } from '../../../../lib/at.ts';
import { attribute, DataType, type Graph, type Node } from '../../format/model.ts';
import { readFloats } from '../../format/tensor-data.ts';
import type { Layout } from '../../layout.ts';
import { unusable } from '../../unusable.ts';
import { pairOf } from './plain-attention.ts';

export interface RotaryTable {
  /** Name of the published table, which has a row for each position. */
  table: string;
  /** Name of the wide table made from it, with a column for each element of a head. */
  wide: string;
  /** Number of elements of a head. */
  width: number;
  /** Number of elements of a head that are rotated, starting with the first; the others are not. */
  rotated: number;
}

/**
 * Describes the tables of cosines and sines that the layers read, each once, and adds a wide form of each to the
 * graph's weights. A published table has one column for each pair of elements; the wide one has one for each element of
 * a head, with the angle 0 for elements that are not rotated. Throws `engine_failed` for tables that are chosen by the
 * length of the text (LongRoPE).
 */
export function rotaryTables(graph: Graph, layout: Layout, attention: readonly Node[]): RotaryTable[] {
  const found = new Map<string, RotaryTable>();
  for (const [layer, node] of attention.entries()) {
    if (!attribute(node, 'do_rotary')) continue;
    const width = at(layout.kv, layer).headSize;
    for (const [part, table] of node.inputs.slice(7, 9).entries()) {
      const tensor = graph.initializers.get(table);
      const [rows, pairs] = tensor?.dims ?? [];
      if (!tensor || !rows || !pairs)
        throw unusable('its rotary tables depend on the length of the text (LongRoPE), which has no static form');
      const wide = `assay/rotary_table/${table}`;
      if (found.has(table)) continue;
      found.set(table, { table, wide, width, rotated: 2 * pairs });
      const unrotated = part === 0 ? 1 : 0;
      const interleaved = attribute(node, 'rotary_interleaved') === 1;
      graph.initializers.set(wide, {
        name: wide,
        dataType: DataType.float,
        dims: [rows, width],
        data: {
          length: rows * width * 4,
          *pieces() {
            const values = readFloats(tensor);
            const row = new Float32Array(width).fill(unrotated);
            for (let at = 0; at < rows; at++) {
              for (let pair = 0; pair < pairs; pair++) {
                const [first, second] = pairOf(pair, pairs, interleaved);
                row[first] = values[at * pairs + pair]!;
                row[second] = values[at * pairs + pair]!;
              }
              yield new Uint8Array(row.slice().buffer);
            }
          },
        },
      });
    }
  }
  return [...found.values()];
}

/** Returns the name of the value with a rotary table's rows at the positions of the new cells. */
export function rotaryRowsName(table: string): string {
  return `assay/rotary/${table}`;
}

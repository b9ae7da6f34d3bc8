import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import type { EncoderManifest } from '../compile/manifest.ts';
import { sessionOptions } from '../engine/model.ts';
import type { EncoderRow, RowOutput, RunHead } from './adapter.ts';

/** Most tokens of one run of several rows, with padding: a request that comes meanwhile waits for its end. */
const MOST_TOKENS = 512;
/** Shortest row of a run as a share of the longest one, because padding costs as much as tokens. */
const LEAST_SHARE = 0.75;

/** Holds the graphs of an encoder model in memory. */
export interface EncoderGraphs {
  /** Splits rows into those of one run each, short rows first. */
  batches(rows: readonly EncoderRow[]): EncoderRow[][];
  /** Runs a batch through the model. Rows do not influence each other. */
  run(rows: readonly EncoderRow[]): Promise<RowOutput[]>;
  /** True if each row has a run of its own. */
  alone: boolean;
  head: RunHead;
  close(): Promise<void>;
}

/**
 * Opens the graphs of a compiled encoder model. Throws `engine_failed` if one does not load.
 *
 * @param pad id of the padding token
 */
export async function openEncoderGraphs(
  folder: string,
  { graphs }: Pick<EncoderManifest, 'graphs'>,
  { pad, threads }: { pad: number; threads?: number | undefined },
): Promise<EncoderGraphs> {
  const options = { executionProviders: ['cpu'], ...(await sessionOptions(threads)) };
  const sessions = new Map<string, InferenceSession>();
  const close = async (): Promise<void> => {
    for (const session of sessions.values()) await session.release();
  };
  try {
    for (const [role, file] of Object.entries(graphs)) {
      sessions.set(role, await InferenceSession.create(join(folder, file), options));
    }
  } catch (cause) {
    await close();
    const message =
      "The compiled model does not load: delete the model's compiled files (assay rm --compiled-only <model>) and load it again.";
    throw new AssayError('engine_failed', message, { cause });
  }
  const session = (role: string): InferenceSession => {
    const found = sessions.get(role);
    if (!found) throw new Error(`the model has no graph ${role}`);
    return found;
  };
  const main = sessions.has('encoder') ? session('encoder') : session('model');
  const alone = takesOneRow(main);
  return {
    alone,
    batches: (rows) => batchesOf(rows, alone),
    async run(rows) {
      const width = Math.max(...rows.map(({ ids }) => ids.length));
      const outputs = await main.run(feedsOf(main.inputNames, rows, width, pad));
      return rows.map((row, i) => rowOutput(outputs, row, { i, rows: rows.length, width }));
    },
    async head(role, given) {
      const head = session(role);
      const feeds = Object.entries(given).map(([name, { data, dims }]) => [
        name,
        data instanceof Float32Array ? new Tensor('float32', data, dims) : int64(data, dims),
      ]);
      const outputs = await head.run(Object.fromEntries(feeds));
      return floatsOf(at(Object.values(outputs), 0));
    },
    close,
  };
}

/** Tells whether a graph was exported for a single row at a time. */
function takesOneRow(session: InferenceSession): boolean {
  return session.inputMetadata.some((input) => input.isTensor && input.name === 'input_ids' && input.shape[0] === 1);
}

/** Implements `EncoderGraphs.batches`; `alone`: the graph takes one row at a time. */
export function batchesOf(rows: readonly EncoderRow[], alone: boolean): EncoderRow[][] {
  const batches: EncoderRow[][] = [];
  for (const row of rows.toSorted((a, b) => a.ids.length - b.ids.length)) {
    const batch = batches.at(-1);
    const { length } = row.ids;
    const count = (batch?.length ?? 0) + 1;
    const fits =
      batch !== undefined && !alone && count * length <= MOST_TOKENS && at(batch, 0).ids.length >= LEAST_SHARE * length;
    if (fits) batch.push(row);
    else batches.push([row]);
  }
  return batches;
}

/** Returns the inputs of a run by the names that exporters give them. Throws for an input with another name. */
function feedsOf(
  names: readonly string[],
  rows: readonly EncoderRow[],
  width: number,
  pad: number,
): Record<string, Tensor> {
  const count = rows.length;
  const markers = Math.max(2, ...rows.map((row) => row.markers?.length ?? 0));
  const pairs = Math.max(1, ...rows.map((row) => row.parts?.options.length ?? 0));
  const padded = (lists: (readonly number[])[], length: number, filler: number): Tensor => {
    const values = new Array<number>(count * length).fill(filler);
    for (const [i, list] of lists.entries()) for (const [k, value] of list.entries()) values[i * length + k] = value;
    return int64(values, [count, length]);
  };
  const ones = (list: readonly unknown[] = []): number[] => list.map(() => 1);
  const make: Record<string, () => Tensor> = {
    input_ids: () =>
      padded(
        rows.map(({ ids }) => ids),
        width,
        pad,
      ),
    attention_mask: () =>
      padded(
        rows.map(({ ids }) => ones(ids)),
        width,
        0,
      ),
    token_type_ids: () =>
      padded(
        rows.map(({ ids, secondFrom = ids.length }) => ids.map((_, i) => (i < secondFrom ? 0 : 1))),
        width,
        0,
      ),
    marker_pos: () =>
      padded(
        rows.map((row) => row.markers ?? []),
        markers,
        0,
      ),
    marker_positions: () =>
      padded(
        rows.map((row) => row.markers ?? []),
        markers,
        0,
      ),
    marker_mask: () => {
      const mask = new Uint8Array(count * markers);
      for (const [i, row] of rows.entries()) mask.fill(1, i * markers, i * markers + (row.markers?.length ?? 0));
      return new Tensor('bool', mask, [count, markers]);
    },
    positions: () => int64(rows[0]?.markers ?? [], [rows[0]?.markers?.length ?? 0]),
    qtype: () =>
      int64(
        rows.map(({ kind = 0 }) => kind),
        [count],
      ),
    seg: () =>
      padded(
        rows.map((row) => row.parts?.tokens ?? []),
        width,
        -1,
      ),
    pair_q: () =>
      padded(
        rows.map((row) => row.parts?.questions ?? []),
        pairs,
        0,
      ),
    pair_opt: () =>
      padded(
        rows.map((row) => row.parts?.options ?? []),
        pairs,
        0,
      ),
  };
  return Object.fromEntries(
    names.map((name) => {
      const tensor = make[name]?.();
      if (!tensor) throw new Error(`the graph has an unknown input ${name}`);
      return [name, tensor];
    }),
  );
}

/** Names of the inputs that graphs of encoder models may have. */
export const GRAPH_INPUTS: ReadonlySet<string> = new Set([
  'input_ids',
  'attention_mask',
  'token_type_ids',
  'marker_pos',
  'marker_positions',
  'marker_mask',
  'positions',
  'qtype',
  'seg',
  'pair_q',
  'pair_opt',
]);

/** Returns the part of each output that belongs to one row, without the outputs at padding. */
function rowOutput(
  outputs: InferenceSession.OnnxValueMapType,
  { ids }: EncoderRow,
  { i, rows, width }: { i: number; rows: number; width: number },
): RowOutput {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, tensor]) => {
      const data = floatsOf(tensor);
      const size = data.length / rows;
      const kept = tensor.dims[0] === rows && tensor.dims[1] === width ? (size / width) * ids.length : size;
      return [name, data.slice(i * size, i * size + kept)];
    }),
  );
}

function floatsOf(tensor: Tensor): Float32Array {
  if (tensor.data instanceof Float32Array) return tensor.data;
  throw new Error(`an output is of type ${tensor.type}, not float32`);
}

function int64(values: readonly number[], dims: readonly number[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(values, BigInt), dims);
}

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { dataLength, type OnnxModel } from '../onnx/format/model.ts';
import { widened } from '../onnx/format/tensor-data.ts';
import { WeightsWriter, writeModel } from '../onnx/format/write-model.ts';

/** Holds a graph, and the name of the file to write it to. */
export interface GraphFile {
  file: string;
  model: OnnxModel;
}

/** Holds graphs that have been rewritten in memory and are ready to be written. */
export interface PlannedGraphs {
  /** Number of bytes of weights that `write` writes. */
  bytes: number;
  /**
   * Writes the graphs and their weights to a folder, with one tensor in memory at a time. `onBytes` receives the number
   * of bytes of each piece that is written. Throws the reason of `signal` if it aborts.
   */
  write(folder: string, onBytes: (count: number) => void, signal: AbortSignal | undefined): Promise<void>;
}

/**
 * Prepares to write several graphs that share one file of weights, `weightsFile`. Weights in 16-bit floats are written
 * in 32 bits.
 */
export function plannedGraphs(graphs: readonly GraphFile[], weightsFile: string): PlannedGraphs {
  const initializers = new Map(graphs.flatMap(({ model: { graph } }) => [...graph.initializers]));
  const tensors = Array.from(initializers.values(), widened);
  return {
    bytes: tensors.reduce((sum, tensor) => sum + dataLength(tensor.data), 0),
    async write(folder, onBytes, signal) {
      mkdirSync(folder, { recursive: true });
      const weights = new WeightsWriter(folder, weightsFile);
      const protos = new Map<string, Uint8Array>();
      try {
        for (const tensor of tensors) {
          signal?.throwIfAborted();
          protos.set(tensor.name, weights.write(tensor, onBytes));
          await setImmediate(); // lets an abort and the progress messages through
        }
      } finally {
        weights.close();
      }
      for (const { file, model: part } of graphs) {
        const own = Array.from(part.graph.initializers.keys(), (name) => protos.get(name)!);
        writeModel(join(folder, file), part, own);
      }
    },
  };
}

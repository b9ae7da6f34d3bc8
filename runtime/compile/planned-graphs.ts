import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { dataLength, type Model } from '../onnx/model.ts';
import { widened } from '../onnx/tensor-data.ts';
import { WeightsWriter, writeModel } from '../onnx/write-model.ts';

/** Names the file of a graph. */
export interface GraphFile {
  file: string;
  model: Model;
}

/** Graphs that are rewritten in memory and ready to be written. */
export interface PlannedGraphs {
  /** Bytes of weights that `write` will write. */
  bytes: number;
  /** Writes graphs and weights with one tensor in memory at a time, and reports the bytes of each piece. */
  write(folder: string, onBytes: (count: number) => void, signal: AbortSignal | undefined): Promise<void>;
}

/** Plans the files of graphs that share their weights in one file. */
export function plannedGraphs(graphs: readonly GraphFile[], weightsFile: string): PlannedGraphs {
  // The parts of a model share their weights.
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

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from '../../lib/at.ts';
import { DataType, type Graph, makeNode, makeTensor, type OnnxModel } from '../../runtime/onnx/format/model.ts';
import { WeightsWriter, writeModel } from '../../runtime/onnx/format/write-model.ts';
import { Noise } from './noise.ts';

export const MS = 'com.microsoft';

/** Builds and writes the ONNX graph of a model with random weights in bfloat16. */
export class GraphWriter {
  readonly graph: Graph = { nodes: [], initializers: new Map(), inputs: [], outputs: [], rest: [] };
  readonly #noise = new Noise(12345);

  /** Adds a node. Returns its name, which is that of its first output. */
  add(op: string, inputs: string[], outputs: string[], attributes: Parameters<typeof makeNode>[3] = {}, domain = '') {
    const name = at(outputs, 0);
    // Replaces the name that `makeNode` gives, because the compiler uses such names (`assay/…`) for nodes that it adds.
    this.graph.nodes.push({ ...makeNode(op, inputs, outputs, attributes, domain), name });
    return name;
  }

  /** Adds a random weight and returns its name. */
  weight(name: string, dims: number[], amplitude: number): string {
    const length = dims.reduce((product, dim) => product * dim, 2);
    const data = { length, pieces: () => this.#noise.bfloat16(length / 2, amplitude) };
    this.graph.initializers.set(name, { name, dataType: DataType.bfloat16, dims, data });
    return name;
  }

  /** Adds a constant and returns its name. A constant that was added before may be added again. */
  constant(name: string, values: Float32Array | BigInt64Array, dims: number[] = [values.length]): string {
    this.graph.initializers.set(name, makeTensor(name, dims, values));
    return name;
  }

  integers(...values: number[]): string {
    return this.constant(`integers/${values.join(',')}`, BigInt64Array.from(values, BigInt));
  }

  ones(name: string, length: number): string {
    return this.constant(name, new Float32Array(length).fill(1));
  }

  /**
   * Adds a product of `x` and a random matrix that preserves the magnitude of the numbers. Returns its output's name.
   */
  linear(name: string, x: string, inputs: number, outputs: number): string {
    return this.add('MatMul', [x, this.weight(`${name}.weight`, [inputs, outputs], Math.sqrt(3 / inputs))], [name]);
  }

  /**
   * Adds an input and an output for values that one run passes to the next: KV or recurrent state. Returns both names.
   */
  carried(past: string, present: string, dims: (string | number)[]): [past: string, present: string] {
    this.graph.inputs.push({ name: past, dataType: DataType.bfloat16, dims });
    this.graph.outputs.push({ name: present, dataType: DataType.bfloat16, dims });
    return [past, present];
  }

  /** Writes `model.onnx`, its weights, and a configuration with a context length of `context` tokens. */
  write(folder: string, context: number): void {
    const opsets = new Map([
      ['', 21],
      [MS, 1],
    ]);
    // IR 10
    const model: OnnxModel = { graph: this.graph, opsets, rest: [{ no: 1, wire: 0, bytes: Uint8Array.of(10) }] };
    const weights = new WeightsWriter(folder, 'model.onnx.data');
    const tensors = Array.from(this.graph.initializers.values(), (tensor) => weights.write(tensor, () => {}));
    weights.close();
    writeModel(join(folder, 'model.onnx'), model, tensors);
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ max_position_embeddings: context }));
  }
}

import { AssayError } from '../../lib/errors.ts';
import { readSafetensors } from '../checkpoint/safetensors.ts';
import { floatTensor } from '../checkpoint/weight-source.ts';
import { readFloats } from '../onnx/format/tensor-data.ts';

/** Holds the tensors of a decision head, by name, as 32-bit floats. */
export class HeadTensors {
  readonly #tensors: ReadonlyMap<string, { dims: readonly number[]; floats(): Float32Array }>;
  readonly #file: string;

  constructor(file: string, tensors: ReadonlyMap<string, { dims: readonly number[]; floats(): Float32Array }>) {
    this.#file = file;
    this.#tensors = tensors;
  }

  /**
   * Returns a tensor's values. Throws `engine_failed` if it is missing or has other dimensions (null: any).
   */
  tensor(name: string, dims: readonly (number | null)[]): Float32Array {
    const found = this.#tensors.get(name);
    const fits = found?.dims.length === dims.length && dims.every((dim, i) => dim === null || dim === found.dims[i]);
    if (found && fits) return found.floats();
    const has = found ? `has the dimensions ${found.dims.join(' x ')}` : 'is missing';
    throw new AssayError('engine_failed', `The tensor ${name} of ${this.#file} ${has}. Download the model again.`);
  }

  /** Throws `engine_failed` if there is a tensor with another name: it would change the numbers. */
  expectOnly(...names: string[]): void {
    const other = [...this.#tensors.keys()].find((name) => !names.includes(name));
    if (other === undefined) return;
    throw new AssayError(
      'engine_failed',
      `${this.#file} has the tensor ${other}, which this version of Assay does not know. Use another model.`,
    );
  }
}

/** Maximum bytes of a head that is read as a whole. */
const MAX_BYTES = 256 << 20;

/** Reads the tensors of a safetensors file with a decision head. Throws `engine_failed` for a damaged or large file. */
export function readHeadTensors(file: string): HeadTensors {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const tensors = readSafetensors(file);
  return new HeadTensors(
    name,
    new Map(
      [...tensors].map(([key, stored]) => [
        key,
        {
          dims: stored.dims,
          floats() {
            const tensor = floatTensor(stored);
            const bytes = tensor.dims.reduce((product, dim) => product * dim, 4);
            if (bytes <= MAX_BYTES) return readFloats(tensor);
            throw new AssayError('engine_failed', `The tensor ${key} of ${name} is too large. Use another model.`);
          },
        },
      ]),
    ),
  );
}

import { at } from '../../lib/at.ts';
import { computedRows, readFloats, readSomeFloats } from '../onnx/format/tensor-data.ts';
import { unusable } from '../onnx/unusable.ts';
import { floatTensor, type StoredTensor, type WeightSource } from './weight-source.ts';

/** Tells how strongly an adapter changes each matrix: `scale(module, rank)` is the factor of B · A. */
export type LoraScale = (module: string, rank: number) => number;

/** Matches the names of an adapter's matrices in PEFT's files. */
const NAME = /^base_model\.model\.(.+)\.lora_(A|B)(?:\.default)?\.weight$/u;
/** Begins the names of a language model in a checkpoint or an adapter, the longest first. */
const PREFIXES = ['model.language_model.', 'language_model.model.', 'model.text_model.', 'language_model.', 'model.'];

/**
 * Returns the weights of a base model with a low-rank adapter added: `W + scale · B · A`, in 32-bit floats, computed
 * when a weight is read. Throws `engine_failed` for an adapter with anything else than pairs of matrices, or for
 * another base model.
 */
export function mergeLora(base: WeightSource, adapter: WeightSource, scale: LoraScale): WeightSource {
  const merged = new Map(base);
  const modules = modulesOf(base);
  for (const [module, { a, b }] of pairsOf(adapter)) {
    const stored = modules.get(withoutPrefix(module));
    if (!stored) throw unusable(`its adapter changes "${module}", which its base model does not have`);
    const [outputs, inputs] = stored.dims;
    const [rank] = a.dims;
    const fits = stored.dims.length === 2 && a.dims.length === 2 && b.dims.length === 2;
    if (!(fits && rank && a.dims[1] === inputs && b.dims[0] === outputs && b.dims[1] === rank)) {
      throw unusable(`its adapter's matrices for "${module}" do not fit its base model`);
    }
    merged.set(stored.name, added(stored, { a, b, scale: scale(module, rank) }));
  }
  return merged;
}

function withoutPrefix(name: string): string {
  const prefix = PREFIXES.find((one) => name.startsWith(one)) ?? '';
  return name.slice(prefix.length);
}

/** Returns the weights of linear layers by the names of their modules within the language model. */
function modulesOf(base: WeightSource): Map<string, StoredTensor> {
  const modules = new Map<string, StoredTensor>();
  for (const [name, stored] of base) {
    if (!name.endsWith('.weight')) continue;
    const module = withoutPrefix(name.slice(0, -'.weight'.length));
    if (modules.has(module)) throw unusable(`its base model has two weights for "${module}"`);
    modules.set(module, stored);
  }
  return modules;
}

interface Pair {
  a: StoredTensor;
  b: StoredTensor;
}

function pairsOf(adapter: WeightSource): Map<string, Pair> {
  const halves = new Map<string, { A?: StoredTensor; B?: StoredTensor }>();
  for (const [name, stored] of adapter) {
    const [, module, half] = NAME.exec(name) ?? [];
    if (module === undefined) throw unusable(`its adapter has the tensor "${name}", which is not known here`);
    halves.set(module, { ...halves.get(module), [half === 'A' ? 'A' : 'B']: stored });
  }
  const pairs = new Map<string, Pair>();
  for (const [module, { A: a, B: b }] of halves) {
    if (!(a && b)) throw unusable(`its adapter has only one of the two matrices for "${module}"`);
    pairs.set(module, { a, b });
  }
  return pairs;
}

/** Returns a matrix with the adapter's part added, computed by rows. */
function added(stored: StoredTensor, { a, b, scale }: Pair & { scale: number }): StoredTensor {
  const base = floatTensor(stored);
  const [rows, columns] = [at(stored.dims, 0), at(stored.dims, 1)];
  const rank = at(a.dims, 0);
  let factors: { down: Float32Array; up: Float32Array } | undefined;
  const data = computedRows(rows, columns, (first, count) => {
    factors ??= { down: readFloats(floatTensor(a)), up: readFloats(floatTensor(b)) };
    const { down, up } = factors;
    const floats = readSomeFloats(base, first * columns, count * columns);
    for (let row = 0; row < count; row++) {
      const own = up.subarray((first + row) * rank, (first + row + 1) * rank);
      addRow(floats.subarray(row * columns, (row + 1) * columns), { factors: own, down, scale });
    }
    return floats;
  });
  return { name: stored.name, dtype: 'F32', dims: stored.dims, data };
}

/** Adds `scale · factors · down` to one row, in 64-bit floats until the last rounding. */
function addRow(
  row: Float32Array,
  { factors, down, scale }: { factors: Float32Array; down: Float32Array; scale: number },
): void {
  const sums = new Float64Array(row.length);
  for (const [rank, factor] of factors.entries()) {
    if (factor === 0) continue;
    const start = rank * row.length;
    for (let column = 0; column < row.length; column++) {
      sums[column] = (sums[column] ?? 0) + factor * (down[start + column] ?? 0);
    }
  }
  for (let column = 0; column < row.length; column++) row[column] = (row[column] ?? 0) + scale * (sums[column] ?? 0);
}

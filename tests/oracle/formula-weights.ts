/** Names and dimensions of the weights of a model, in the order of their names. */
export type WeightShapes = readonly [name: string, dims: number[]][];

/** Returns `count` numbers from -0.5 to 0.5 for the weight with this number, as `values` of `formula.py` does. */
export function valuesOf(number: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => {
    let x = Math.imul(i, 2654435761) + Math.imul(number, 40503);
    x = Math.imul(x ^ (x >>> 15), 2246822519);
    x = Math.imul(x ^ (x >>> 13), 3266489917);
    return Math.fround(((x ^ (x >>> 16)) >>> 0) / 2 ** 32 - 0.5);
  });
}

/**
 * Returns a safetensors file of weights that `fill` of `tests/fixtures/formula.py` gives the same model, so that a
 * reference needs no weights of its own in the repository.
 */
export function formulaSafetensors(weights: WeightShapes): Buffer {
  const header: Record<string, unknown> = {};
  const parts: Buffer[] = [];
  let end = 0;
  for (const [number, [name, dims]] of weights.entries()) {
    const count = dims.reduce((product, dim) => product * dim, 1);
    const gain = dims.length === 1 && /norm/iu.test(name) && name.endsWith('weight') ? 1 : 0;
    const values = valuesOf(number, count).map((value) => {
      const scaled = Math.fround(value * Math.fround(dims.length > 1 ? 1.2 : 0.4));
      return dims.length > 1 ? scaled : Math.fround(scaled + gain);
    });
    parts.push(Buffer.from(Float32Array.from(values).buffer));
    header[name] = { dtype: 'F32', shape: dims, data_offsets: [end, end + 4 * count] };
    end += 4 * count;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}

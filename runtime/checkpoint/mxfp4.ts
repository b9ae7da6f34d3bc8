import { computedRows, openData } from '../onnx/format/tensor-data.ts';
import { unusable } from '../onnx/unusable.ts';
import { E2M1 } from './gguf/blocks.ts';
import type { StoredTensor, WeightSource } from './weight-source.ts';

/** Weights of a block, which share a scale, and the bytes that hold them. */
const [BLOCK, BYTES] = [32, 16];

/**
 * Returns a checkpoint with its matrices in MXFP4 as 32-bit floats, which are computed when they are read. GPT-OSS has
 * those of its experts so: `<name>_blocks`, `[experts, outputs, blocks, 16]`, and `<name>_scales`. They become
 * `<name>`, `[experts, inputs, outputs]`, as transformers unpacks them (`integrations/mxfp4.py`).
 */
export function unpackMxfp4(source: WeightSource): WeightSource {
  const unpacked = new Map(source);
  for (const [name, blocks] of source) {
    const [, path] = /^(.+)_blocks$/u.exec(name) ?? [];
    const scales = path === undefined ? undefined : source.get(`${path}_scales`);
    if (path === undefined || !scales || blocks.dtype !== 'U8' || scales.dtype !== 'U8') continue;
    unpacked.delete(name);
    unpacked.delete(scales.name);
    unpacked.set(path, { ...unpack(blocks, scales), name: path });
  }
  return unpacked;
}

function unpack(blocks: StoredTensor, scales: StoredTensor): Omit<StoredTensor, 'name'> {
  const [experts = 0, outputs = 0, count = 0, bytes] = blocks.dims;
  if (blocks.dims.length !== 4 || bytes !== BYTES || scales.dims.join() !== [experts, outputs, count].join()) {
    throw unusable(`the weights "${blocks.name}" and "${scales.name}" do not fit each other`);
  }
  const inputs = count * BLOCK;
  const data = computedRows(experts, inputs * outputs, (first, wanted) => {
    const floats = new Float32Array(wanted * inputs * outputs);
    const [levels, exponents] = [blocks, scales].map((stored) => {
      const reader = openData(stored.data);
      const each = reader.length / experts;
      try {
        return reader.read(first * each, (first + wanted) * each);
      } finally {
        reader.close();
      }
    });
    for (let row = 0; row < wanted * outputs; row++) {
      const start = Math.floor(row / outputs) * inputs * outputs + (row % outputs);
      for (let place = 0; place < inputs; place++) {
        const block = row * count + Math.floor(place / BLOCK);
        const both = levels?.[row * (inputs / 2) + (place >> 1)] ?? 0;
        const level = place % 2 === 0 ? both & 15 : both >> 4;
        // The table has twice the values.
        floats[start + place * outputs] = (E2M1[level] ?? 0) * 2 ** ((exponents?.[block] ?? 0) - 128);
      }
    }
    return floats;
  });
  return { dtype: 'F32', dims: [experts, inputs, outputs], data };
}

import { at } from '../../lib/at.ts';
import { attributeFields, DataType, type OnnxModel, type OnnxNode, type Tensor } from './format/model.ts';
import { constantOf } from './format/read-model.ts';
import { unusable } from './unusable.ts';

/** Tells whether a graph has weights in 16-bit floats, and so computes in 16 bits. */
export function isHalf(model: OnnxModel): boolean {
  return [...model.graph.initializers.values()].some((tensor) => isHalfType(tensor.dataType));
}

/** Tells whether an ONNX element type is a float of 16 bits: float16 or bfloat16. */
export function isHalfType(dataType: number): boolean {
  return dataType === DataType.float16 || dataType === DataType.bfloat16;
}

/**
 * Changes a graph of 16-bit floats in place to 32-bit floats, which CPUs compute faster. Its weights stay in 16 bits
 * until they are written. Throws `engine_failed` for a graph with subgraphs (If, Loop).
 */
export function toFloat32(model: OnnxModel): void {
  const { graph } = model;
  for (const info of [...graph.inputs, ...graph.outputs]) if (isHalfType(info.dataType)) info.dataType = DataType.float;
  const kept: OnnxNode[] = [];
  for (const node of graph.nodes) {
    for (const attribute of node.attributes.values()) {
      if (attribute.some((field) => field.no === 6 || field.no === 11)) {
        throw unusable('it has branches (If, Loop) in 16 bits', 'Use the 32-bit or 4-bit file of this model.');
      }
    }
    const to = node.op === 'Cast' ? node.attributes.get('to') : undefined;
    if (to && isHalfType(castType(node))) node.attributes.set('to', attributeFields('to', DataType.float));
    const constant = constantOf(node);
    if (constant && isHalfType(constant.dataType)) {
      const name = at(node.outputs, 0);
      graph.initializers.set(name, { ...constant, name });
      continue;
    }
    kept.push(node);
  }
  graph.nodes = kept;
}

/** Converts bytes of 16-bit floats, of the type `dataType` (float16 or bfloat16), to 32-bit floats. */
export function widen(bytes: Uint8Array, dataType: Tensor['dataType']): Float32Array<ArrayBuffer> {
  const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
  const floats = new Float32Array(halves.length);
  if (dataType === DataType.bfloat16) {
    const bits = new Uint32Array(floats.buffer);
    for (let i = 0; i < halves.length; i++) bits[i] = halves[i]! << 16;
    return floats;
  }
  const table = halfTable();
  for (let i = 0; i < halves.length; i++) floats[i] = table[halves[i]!]!;
  return floats;
}

/** Rounds a number, of at most 65,504, to the nearest float of 16 bits. */
export function roundToHalf(value: number): number {
  const quantum = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(value)))) - 10);
  // A double of this size has no digits below the quantum.
  const large = 1.5 * 2 ** 52 * quantum;
  return value + large - large;
}

/** Returns the value of a half-precision float from its bits. */
export function fromHalf(bits: number): number {
  return halfTable()[bits]!;
}

let halfValues: Float32Array | undefined;

/** Returns a table of all 65,536 half-precision values (IEEE 754 binary16), by their bits. */
function halfTable(): Float32Array {
  if (halfValues) return halfValues;
  const table = new Float32Array(1 << 16);
  for (let bits = 0; bits < table.length; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    table[bits] =
      exponent === 31
        ? fraction
          ? Number.NaN
          : sign * Number.POSITIVE_INFINITY
        : exponent === 0
          ? sign * fraction * 2 ** -24
          : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  halfValues = table;
  return table;
}

function castType(node: OnnxNode): number {
  const field = node.attributes.get('to')?.find((part) => part.no === 3);
  return field?.bytes[0] ?? 0;
}

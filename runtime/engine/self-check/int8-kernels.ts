import { InferenceSession, Tensor } from 'onnxruntime-node';
import { DataType, makeNode, makeTensor, type OnnxModel } from '../../onnx/format/model.ts';
import { bytesField, varintField } from '../../onnx/format/wire.ts';
import { encodeSmallModel } from '../../onnx/format/write-model.ts';
import { floatsOf } from '../forward/forward.ts';

/** IR version of ONNX 1.13, which every current onnxruntime reads. */
const IR_VERSION = 8;
const DEPTH = 64;
const WIDTH = 16;
const LARGEST = { activation: 255, weight: 127 };

let saturates: Promise<boolean> | undefined;

/**
 * Tells whether onnxruntime computes MatMuls of unsigned 8-bit activations and signed 8-bit weights wrongly on this
 * CPU. Its kernels for AVX2 and for AVX-512 without VNNI add pairs of products in 16 bits and clamp the sum
 * (onnxruntime, "Quantize ONNX models", "When and why do I need to try U8U8?"). Measured once per process, because no
 * list of CPU flags says which kernel runs.
 */
export function int8ProductsSaturate(): Promise<boolean> {
  saturates ??= largestProductsAreExact({ logSeverityLevel: 3, intraOpNumThreads: 1 }).then((exact) => !exact);
  return saturates;
}

/**
 * Multiplies the largest 8-bit activations by the largest weights, on the CPU with these session options. Returns true
 * if every sum is exact.
 */
export async function largestProductsAreExact(options: InferenceSession.SessionOptions): Promise<boolean> {
  const model = encodeSmallModel(largestProductsModel());
  const session = await InferenceSession.create(model, { ...options, executionProviders: ['cpu'] });
  const exact = DEPTH * LARGEST.activation * LARGEST.weight;
  try {
    // onnxruntime has separate kernels for one row and for several rows.
    for (const rows of [1, 8]) {
      const x = new Tensor('uint8', new Uint8Array(rows * DEPTH).fill(LARGEST.activation), [rows, DEPTH]);
      const y = floatsOf(await session.run({ x }), 'y');
      if (y.some((value) => value !== exact)) return false;
    }
    return true;
  } finally {
    await session.release();
  }
}

/**
 * Returns a graph that multiplies its input `x` by the largest weights, with the operator that the 8-bit precision
 * uses (`compile/weights/int8.ts`).
 */
function largestProductsModel(): OnnxModel {
  const weights = new Int8Array(DEPTH * WIDTH).fill(LARGEST.weight);
  const one = makeTensor('one', [], Float32Array.of(1));
  return {
    opsets: new Map([
      ['', 17],
      ['com.microsoft', 1],
    ]),
    graph: {
      nodes: [makeNode('MatMulIntegerToFloat', ['x', 'weights', 'one', 'one'], ['y'], {}, 'com.microsoft')],
      initializers: new Map([
        ['one', one],
        ['weights', makeTensor('weights', [DEPTH, WIDTH], weights)],
      ]),
      inputs: [{ name: 'x', dataType: DataType.uint8, dims: ['rows', DEPTH] }],
      outputs: [{ name: 'y', dataType: DataType.float, dims: ['rows', WIDTH] }],
      rest: [bytesField(2, 'largest products')],
    },
    rest: [varintField(1, IR_VERSION)],
  };
}

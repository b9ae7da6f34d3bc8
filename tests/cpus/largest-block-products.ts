import { InferenceSession, Tensor } from 'onnxruntime-node';
import { int8BlockWeights } from '../../runtime/compile/weights/blocks.ts';
import { floatsOf } from '../../runtime/engine/forward/forward.ts';
import { sessionOptions } from '../../runtime/engine/model.ts';
import { DataType, makeNode, makeTensor, type OnnxModel } from '../../runtime/onnx/format/model.ts';
import { bytesField, varintField } from '../../runtime/onnx/format/wire.ts';
import { encodeSmallModel } from '../../runtime/onnx/format/write-model.ts';

const DEPTH = 128;
const WIDTH = 16;
/** IR version of ONNX 1.13, which every current onnxruntime reads. */
const IR_VERSION = 8;

/**
 * Multiplies the largest 8-bit activations by the largest weights in blocks of 8 bits, which kernels that add pairs of
 * products in 16 bits would clamp. Returns the largest error as a share of the exact result; rounding alone makes it
 * about 0.008, clamping 0.5.
 */
export async function largestBlockProductsError(): Promise<number> {
  const session = await InferenceSession.create(encodeSmallModel(largestWeights()), await sessionOptions(1));
  const wanted = DEPTH - 4;
  let most = 0;
  try {
    // onnxruntime has separate kernels for one row and for several rows.
    for (const [rows, activation] of [
      [1, 1],
      [1, -1],
      [8, 1],
      [8, -1],
    ] as const) {
      const x = new Tensor('float32', new Float32Array(rows * DEPTH).fill(activation), [rows, DEPTH]);
      for (const value of floatsOf(await session.run({ x }), 'y')) {
        most = Math.max(most, Math.abs(value + activation * wanted) / wanted);
      }
    }
    return most;
  } finally {
    await session.release();
  }
}

/**
 * Returns a MatMul with weights of -1, which become the highest of the 8-bit levels because each block of 64 begins
 * with a weight of 1, which becomes the lowest.
 */
function largestWeights(): OnnxModel {
  const weights = new Float32Array(DEPTH * WIDTH).fill(-1);
  for (let input = 0; input < DEPTH; input += 64) weights.fill(1, input * WIDTH, (input + 1) * WIDTH);
  const model: OnnxModel = {
    opsets: new Map([['', 17]]),
    graph: {
      nodes: [makeNode('MatMul', ['x', 'w'], ['y'])],
      initializers: new Map([['w', makeTensor('w', [DEPTH, WIDTH], weights)]]),
      inputs: [{ name: 'x', dataType: DataType.float, dims: ['rows', DEPTH] }],
      outputs: [{ name: 'y', dataType: DataType.float, dims: ['rows', WIDTH] }],
      rest: [bytesField(2, 'largest products in blocks')],
    },
    rest: [varintField(1, IR_VERSION)],
  };
  int8BlockWeights(model);
  model.graph.initializers.delete('w');
  return model;
}

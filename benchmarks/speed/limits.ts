import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { DataType, makeNode, makeTensor, type OnnxModel } from '../../runtime/onnx/format/model.ts';
import { WeightsWriter, writeModel } from '../../runtime/onnx/format/write-model.ts';

/** Size of the block that is read, in bytes. It is larger than the cache of any current processor. */
const BLOCK_BYTES = 384 << 20;
const READ_MS = 1_000;
/** Number of rows and columns of the multiplied matrices. At this size, only the multiply-adds matter. */
const SIZE = 2048;
const PRODUCTS = 8;

/** Measures the memory bandwidth of all threads together, in bytes per second. */
export async function readBandwidth(threads: number): Promise<number> {
  const workers = Array.from(
    { length: threads },
    () => new Worker(new URL('read-worker.ts', import.meta.url), { workerData: { bytes: BLOCK_BYTES, ms: READ_MS } }),
  );
  try {
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    const rates = workers.map((worker) => once(worker, 'message') as Promise<[number]>);
    for (const worker of workers) worker.postMessage('go');
    return (await Promise.all(rates)).reduce((sum, [rate]) => sum + rate, 0);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/**
 * Measures the highest rate of 8-bit multiply-adds that this machine reaches, per second: the best of several large
 * MatMuls in onnxruntime.
 */
export async function peakMultiplyAdds(threads: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'assay-benchmark-product-'));
  try {
    const session = await InferenceSession.create(writeProduct(folder), { intraOpNumThreads: threads });
    const x = new Tensor('uint8', new Uint8Array(SIZE * SIZE).fill(3), [SIZE, SIZE]);
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < PRODUCTS; i++) {
      const began = performance.now();
      await session.run({ x });
      least = Math.min(least, performance.now() - began);
    }
    await session.release();
    return (1000 * SIZE ** 3) / least;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function writeProduct(folder: string): string {
  const weight = makeTensor('w', [SIZE, SIZE], new Int8Array(SIZE * SIZE).fill(2));
  const model: OnnxModel = {
    graph: {
      nodes: [makeNode('MatMulInteger', ['x', 'w'], ['y'])],
      initializers: new Map([['w', weight]]),
      inputs: [{ name: 'x', dataType: DataType.uint8, dims: [SIZE, SIZE] }],
      outputs: [{ name: 'y', dataType: DataType.int32, dims: [SIZE, SIZE] }],
      rest: [],
    },
    opsets: new Map([['', 21]]),
    rest: [{ no: 1, wire: 0, bytes: Uint8Array.of(10) }], // IR version 10
  };
  const writer = new WeightsWriter(folder, 'product.data');
  const tensors = [writer.write(weight, () => {})];
  writer.close();
  const file = join(folder, 'product.onnx');
  writeModel(file, model, tensors);
  return file;
}

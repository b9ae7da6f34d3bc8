import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { DataType, makeNode, type OnnxModel } from '../format/model.ts';
import { writeModel } from '../format/write-model.ts';
import { endResults, isEndOfResults } from './end-results.ts';

test('a run fills the arrays of the caller and gives up before it copies them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'assay-end-results-'));
  try {
    const dims = ['length'];
    const model: OnnxModel = {
      graph: {
        nodes: [makeNode('Neg', ['x'], ['y'])],
        initializers: new Map(),
        inputs: [{ name: 'x', dataType: DataType.float, dims }],
        outputs: [{ name: 'y', dataType: DataType.float, dims }],
        rest: [],
      },
      opsets: new Map([['', 21]]),
      rest: [{ no: 1, wire: 0, bytes: Uint8Array.of(10) }], // IR version 10
    };
    const end = endResults(model);
    const file = join(folder, 'model.onnx');
    writeModel(file, model, []);
    const session = await InferenceSession.create(file);
    const y = new Float32Array(2);
    const x = new Tensor('float32', Float32Array.of(1, 2), [2]);
    const run = session.run({ x }, { [end]: null, y: new Tensor('float32', y, [2]) });
    await expect(run).rejects.toSatisfy(isEndOfResults);
    expect([...y]).toEqual([-1, -2]);
    // An error of the run itself must not be taken for the end of results.
    const wrong = session.run({ x }, { [end]: null, y: new Tensor('float32', new Float32Array(3), [3]) });
    await expect(wrong).rejects.not.toSatisfy(isEndOfResults);
    await session.release();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

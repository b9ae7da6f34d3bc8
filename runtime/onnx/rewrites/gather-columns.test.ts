import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { DataType, makeNode, makeTensor, type OnnxModel } from '../format/model.ts';
import { prune } from '../format/subgraph.ts';
import { WeightsWriter, writeModel } from '../format/write-model.ts';
import { gatherColumns } from './gather-columns.ts';

test('an embedding tied to the head reads the same numbers without a transposed copy', async () => {
  const head = makeTensor('head', [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6));
  const { graph, ...rest }: OnnxModel = {
    graph: {
      nodes: [
        makeNode('Transpose', ['head'], ['table'], { perm: [1, 0] }),
        makeNode('Gather', ['table', 'ids'], ['y']),
      ],
      initializers: new Map([['head', head]]),
      inputs: [{ name: 'ids', dataType: DataType.int64, dims: ['batch', 'length'] }],
      outputs: [{ name: 'y', dataType: DataType.float, dims: ['batch', 'length', 2] }],
      rest: [],
    },
    opsets: new Map([['', 21]]),
    rest: [{ no: 1, wire: 0, bytes: Uint8Array.of(10) }], // IR version 10
  };
  gatherColumns(graph);
  prune(graph);
  expect(graph.nodes.map(({ op, inputs }) => [op, inputs[0]])).toEqual([
    ['Gather', 'head'],
    ['Transpose', 'assay/y/columns'],
  ]);
  const folder = mkdtempSync(join(tmpdir(), 'assay-columns-'));
  try {
    const file = join(folder, 'model.onnx');
    const weights = new WeightsWriter(folder, 'weights.bin');
    writeModel(file, { graph, ...rest }, [weights.write(head, () => {})]);
    weights.close();
    const session = await InferenceSession.create(file);
    const { y } = await session.run({ ids: new Tensor('int64', BigInt64Array.of(2n, 0n, 2n), [1, 3]) });
    expect(y?.dims).toEqual([1, 3, 2]);
    expect([...(y?.data ?? [])]).toEqual([3, 6, 1, 4, 3, 6]);
    await session.release();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

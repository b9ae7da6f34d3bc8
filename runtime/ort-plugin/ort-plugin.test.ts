import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkVersion, ORT_VERSION } from './c-api.ts';
import { OrtEnvironment } from './environment.ts';
import { PluginSession } from './plugin-session.ts';

/** y = x · [[2, 0], [0, 2]] for any number of rows (opset 17). */
const DOUBLING = Buffer.from(
  'CAgSADpdChEKAXgKAXcSAXkiBk1hdE11bBIBZyobCAIIAhABQgF3ShAAAABAAAAAAAAAAAAAAABAWhMKAXgSDgoMCAESCAoCCAIKAggCYhMKAXkSDgoMCAESCAoCCAIKAggCQgQKABAR',
  'base64',
);
const RECORD = { 'session.record_ep_graph_assignment_info': '1' };

let folder: string;
let model: string;
let env: OrtEnvironment;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'assay-ort-'));
  model = join(folder, 'doubling.onnx');
  writeFileSync(model, DOUBLING);
  env = await OrtEnvironment.open();
});
afterAll(() => {
  env.release();
  rmSync(folder, { recursive: true, force: true });
});

const doubled = async (session: PluginSession, values: number[]): Promise<number[]> => {
  const y = new Float32Array(4);
  const x = { name: 'x', data: Float32Array.from(values), dims: [2, 2] };
  await session.run([x], [{ name: 'y', data: y, dims: [2, 2] }]);
  return [...y];
};

test('the table of functions is that of the onnxruntime-node which is installed', () => {
  const { version } = createRequire(import.meta.url)('onnxruntime-node/package.json') as { version: string };
  expect(version).toBe(ORT_VERSION);
  expect(() => checkVersion('1.31.0')).toThrow(/1\.31\.0.*npm ci/s);
  expect(() => checkVersion(ORT_VERSION)).not.toThrow();
});

test('the CPU is a device', () => {
  expect(env.hardware().filter(({ hardware }) => hardware === 'CPU')).toHaveLength(1);
  expect(env.devices()).toContainEqual(
    expect.objectContaining({ provider: 'CPUExecutionProvider', hardware: 'CPU', providerVendor: 'Microsoft' }),
  );
});

test('a session computes on the CPU provider and says so', async () => {
  const session = await PluginSession.create(env, model, { config: RECORD, threads: 1 });
  expect(await doubled(session, [1, 2, 3, 4])).toEqual([2, 4, 6, 8]);
  expect(session.assignments()).toEqual([{ provider: 'CPUExecutionProvider', subgraphs: 1, operators: { MatMul: 1 } }]);
  session.release();
  session.release();
});

test('sessions of both kinds run side by side', async () => {
  const ours = await PluginSession.create(env, model);
  const binding = await InferenceSession.create(model);
  const runs = Array.from({ length: 50 }, async (_, i) => {
    if (i % 2 === 0) return doubled(ours, [i, 0, 0, 1]);
    const { y } = await binding.run({ x: new Tensor('float32', [i, 0, 0, 1], [2, 2]) });
    return [...(y!.data as Float32Array)];
  });
  expect(await Promise.all(runs)).toEqual(Array.from({ length: 50 }, (_, i) => [2 * i, 0, 0, 2]));
  ours.release();
  await binding.release();
  const after = await PluginSession.create(env, model);
  expect(await doubled(after, [1, 1, 1, 1])).toEqual([2, 2, 2, 2]);
  after.release();
});

describe('what fails is an error with the call and its code', () => {
  test.each<[string, () => unknown, object]>([
    [
      'a plugin that is not there',
      () => env.register('none', join(folder, 'none.so')),
      { call: 'RegisterExecutionProviderLibrary', code: 'fail' },
    ],
    [
      'a file that is no library',
      () => env.register('none', model),
      { call: 'RegisterExecutionProviderLibrary', code: 'fail' },
    ],
    [
      'a plugin that was never registered',
      () => env.unregister('none'),
      { call: 'UnregisterExecutionProviderLibrary', code: 'fail' },
    ],
    [
      'a model that is not there',
      () => PluginSession.create(env, join(folder, 'none.onnx')),
      { call: 'CreateSession', code: 'no_such_file' },
    ],
    [
      'a file that is no model',
      async () => {
        writeFileSync(join(folder, 'bad.onnx'), 'not a model');
        await PluginSession.create(env, join(folder, 'bad.onnx'));
      },
      { call: 'CreateSession', code: 'invalid_protobuf' },
    ],
    [
      'an assignment that was not recorded',
      async () => (await PluginSession.create(env, model)).assignments(),
      { call: 'Session_GetEpGraphAssignmentInfo', code: 'fail' },
    ],
  ])('%s', async (_, act, expected) => {
    const failure = await (async () => act())().then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ name: 'OrtError', ...expected });
  });

  test('an input that the model does not have', async () => {
    const session = await PluginSession.create(env, model);
    const data = new Float32Array(4);
    const run = session.run([{ name: 'z', data, dims: [2, 2] }], [{ name: 'y', data, dims: [2, 2] }]);
    await expect(run).rejects.toMatchObject({ call: 'Run', code: 'invalid_argument' });
    session.release();
  });

  test('an array that is shorter than its shape never reaches native code', async () => {
    const session = await PluginSession.create(env, model);
    const x = { name: 'x', data: new Float32Array(3), dims: [2, 2] };
    await expect(session.run([x], [])).rejects.toThrow('x has 3 elements and a shape of 4');
    session.release();
  });
});

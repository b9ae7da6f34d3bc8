import { existsSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EngineModel, openModel } from '../../runtime/engine/model.ts';
import type { KvType } from '../../runtime/graph/graph-builder.ts';
import type { PluginTarget } from '../../runtime/ort-plugin/plugin-target.ts';
import { compileForDevice } from '../../runtime/worker/compile-for-device.ts';
import { compileModel, type RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { modelFixture } from '../fixture.ts';
import { compileFixture, drive, engineFor } from '../oracle/fixtures.ts';
import { compiledModel } from '../oracle/plain-models.ts';
import { openvinoCpu, qnnEmulator } from './installed.ts';
import { pretendIntel } from './pretend-intel.ts';

const SHAPES = [{ chunk: 16, past: 64 }];
const openvino = await openvinoCpu();
const qnn = await qnnEmulator();

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-device-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function compileOn(
  target: PluginTarget,
  fixture: string,
  precision: RequestedPrecision,
  kvType: KvType = 'float32',
): Promise<ReturnType<typeof compileForDevice>> {
  const source = modelFixture(fixture);
  await compileModel({ source, target: folder, device: 'NPU', precision, maxPromptLen: 64, fixedShapes: SHAPES });
  return compileForDevice(folder, target, { kvType });
}

/** Returns the largest difference of two models' logits after each token of a text. */
async function apart(left: EngineModel, right: EngineModel, tokens: readonly number[]): Promise<number> {
  const [wanted, got] = [await compiledModel(left).logits(tokens), await compiledModel(right).logits(tokens)];
  return Math.max(
    ...wanted.flatMap((row, at) => Array.from(row, (logit, token) => Math.abs(logit - got[at]![token]!))),
  );
}

const TEXT = Array.from({ length: 40 }, (_, index) => (index * 37 + 5) % 500);

describe.skipIf(!openvino)("OpenVINO's CPU device", () => {
  beforeAll(pretendIntel);

  test.each(['optimum/llama', 'optimum/qwen2', 'optimum/qwen3', 'optimum/gemma3', 'optimum/phi3', 'optimum/smollm2'])(
    '%s equals the packed path within 1e-4, from its own binary',
    async (fixture) => {
      const packed = await compileFixture(fixture, 'float');
      const manifest = await compileOn(openvino!, fixture, 'float');
      expect(manifest.compiledFor).toMatchObject({ identity: expect.stringContaining('openvino test; CPU; ') });
      expect(manifest.compiledFor!.error).toBeLessThan(1e-4);
      expect(readdirSync(folder).filter((name) => /^(body|head).*(?<!device)\.onnx$/.test(name))).toEqual([]);
      const device = await openModel(folder, { plugin: openvino! });
      expect(await apart(packed, device, TEXT)).toBeLessThan(1e-4);
      await Promise.all([packed.close(), device.close()]);
    },
  );

  test('16-bit KV stays near 32-bit KV', async () => {
    const { compiledFor, static: graphs } = await compileOn(openvino!, 'optimum/qwen2', 'float', 'float16');
    expect(graphs!.kvType).toBe('float16');
    expect(compiledFor!.error).toBeLessThan(0.005);
  });

  test('a device that refuses 16-bit KV gets 32 bits', async () => {
    const source = modelFixture('optimum/qwen2');
    const shape = { maxPromptLen: 64, fixedShapes: [...SHAPES, { chunk: 16, past: 128 }] };
    await compileModel({ source, target: folder, device: 'NPU', precision: 'float', ...shape });
    truncateSync(join(folder, 'body-16-128-half.onnx'), 100);
    const { compiledFor, static: graphs } = await compileForDevice(folder, openvino!, { kvType: 'float16' });
    expect(graphs!.kvType).toBe('float32');
    expect(compiledFor!.error).toBeLessThan(1e-4);
    expect(readdirSync(folder).filter((name) => name.includes('half'))).toEqual([]);
  });

  test.each<[KvType, string]>([
    ['float32', 'body-any.onnx'],
    ['float16', 'body-any-half.onnx'],
  ])('a device with kernels of its own gets one graph for all shapes, with KV in %s', async (kvType, body) => {
    const source = modelFixture('optimum/qwen2');
    await compileModel({
      source,
      target: folder,
      device: 'GPU',
      precision: 'float',
      maxPromptLen: 64,
      fixedShapes: SHAPES,
    });
    const target = { ...openvino!, compiles: false };
    const { compiledFor, static: graphs } = await compileForDevice(folder, target, { kvType });
    expect(graphs).toMatchObject({ kvType, head: { graph: 'head.onnx' } });
    expect(new Set(graphs!.bodies.map(({ graph }) => graph))).toEqual(new Set([body]));
    expect(compiledFor!.error).toBeLessThan(0.005);
    const left = readdirSync(folder).filter((name) => /^(body|head)/.test(name));
    expect(left.sort()).toEqual([body, 'head.onnx']);
    const [packed, device] = [
      await compileFixture('optimum/qwen2', 'float'),
      await openModel(folder, { plugin: target }),
    ];
    expect(await apart(packed, device, TEXT)).toBeLessThan(kvType === 'float32' ? 1e-4 : 0.05);
    await Promise.all([packed.close(), device.close()]);
  });

  test.each<[string, RequestedPrecision]>([
    ['optimum/llama', 'int4'],
    ['optimum/qwen2', 'int8'],
    ['optimum/qwen2', 'int4'],
  ])('%s as %s stays near the CPU', async (fixture, precision) => {
    const { compiledFor } = await compileOn(openvino!, fixture, precision);
    // The CPU rounds activations to 8 bits, the device does not.
    expect(compiledFor!.error).toBeLessThan(0.06);
  });
});

describe.skipIf(!qnn)("the emulator of Qualcomm's NPU", () => {
  test.each<[string, RequestedPrecision, KvType, number]>([
    ['optimum/qwen2', 'float', 'float32', 0.02],
    ['optimum/qwen2', 'float', 'float16', 0.02],
    ['optimum/qwen2', 'int8', 'float16', 0.08],
    ['optimum/llama', 'int4', 'float16', 0.1],
  ])('%s as %s with KV in %s: registered, compiled, reloaded from its binary, asked', async (...given) => {
    const [fixture, precision, kvType, bound] = given;
    const { compiledFor, static: graphs } = await compileOn(qnn!, fixture, precision, kvType);
    expect(graphs!.kvType).toBe(kvType);
    expect(compiledFor).toMatchObject({ identity: expect.stringMatching(/^qnn test; CPU; .*htp_arch=73/) });
    expect(compiledFor!.error).toBeLessThan(bound);
    expect(existsSync(join(folder, 'weights.bin'))).toBe(true);
    const [packed, device] = [await compileFixture(fixture, precision), await openModel(folder, { plugin: qnn! })];
    const [wanted, got] = [await decide(packed), await decide(device)];
    await Promise.all([packed.close(), device.close()]);
    for (const [branch, { probabilities }] of wanted.entries()) {
      const apart = probabilities.map((probability, option) =>
        Math.abs(probability - got[branch]!.probabilities[option]!),
      );
      expect(Math.max(...apart)).toBeLessThan(2 * bound);
    }
  });
});

/** Three decisions among options of one and two tokens, after one prefix, in one request. */
async function decide(model: EngineModel): Promise<{ probabilities: readonly number[] }[]> {
  const engine = engineFor(model);
  const suffixes = [[7, 8], [9], [10, 11, 12]];
  const answer = engine.submit({
    id: 'decisions',
    prefix: TEXT.slice(0, 20),
    branches: suffixes.map((suffix) => ({
      suffix,
      choice: {
        paths: [
          [40, 9],
          [80, 9],
          [120, 60, 9],
        ],
      },
      constraint: null,
      sampling: { temperature: 0, topP: 1, seed: 0, presencePenalty: 0, frequencyPenalty: 0, topLogprobs: null },
      maxTokens: 4,
      endTokens: new Set<number>(),
    })),
    budget: 12,
    deadline: Number.POSITIVE_INFINITY,
  });
  await drive(engine);
  engine.checkIntegrity();
  return (await answer).branches.map(({ option }) => option!);
}

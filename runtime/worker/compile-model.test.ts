import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refusedPrecision } from '../../lib/models/refused-precision.ts';
import { PRECISIONS, type Precision } from '../../lib/schema/precision.ts';
import { largestBlockProductsError } from '../../tests/cpus/largest-block-products.ts';
import { checkPrecision, PRECISION_BOUNDS } from '../../tests/cpus/precision-error.ts';
import { fixture, modelFixture } from '../../tests/fixture.ts';
import type { Reference } from '../compile/manifest.ts';
import { MANIFEST_FILE, readManifest } from '../compile/manifest.ts';
import { openModel } from '../engine/model.ts';
import type { CompileProgress } from '../protocol/messages.ts';
import { compileModel, type RequestedPrecision } from './compile-model.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-compile-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function compile(source: string, precision: RequestedPrecision, target = join(folder, 'out')) {
  return compileModel({ source, target, device: 'CPU', precision, maxPromptLen: 256 });
}

describe('what compiling does to the numbers', () => {
  test.each(PRECISION_BOUNDS)('%s/%s as %s', async (fixture, file, precision, bound) => {
    expect((await checkPrecision(fixture, file, precision)).error).toBeLessThan(bound);
  });
});

test('sums in blocks of 8 bits are not clamped', async () => {
  expect(await largestBlockProductsError()).toBeLessThan(0.01);
});

test('the same model gives the same bytes', async () => {
  const hashes = await Promise.all(
    ['a', 'b'].map(async (name) => {
      const target = join(folder, name);
      await compile(modelFixture('genai/qwen2-fp16'), 'int8', target);
      return readdirSync(target)
        .sort()
        .map((file) => [
          file,
          createHash('sha256')
            .update(readFileSync(join(target, file)))
            .digest('hex'),
        ]);
    }),
  );
  expect(hashes[0]).toEqual(hashes[1]);
  expect(hashes[0]!.map(([file]) => file)).toEqual([
    'batch.onnx',
    MANIFEST_FILE,
    'model.onnx',
    'reference.json',
    'weights.bin',
  ]);
});

test('the context is no longer than the tables of rotary embeddings with three parts', async () => {
  const source = join(folder, 'source');
  cpSync(fixture('media/qwen2-vl'), source, { recursive: true });
  const config = JSON.parse(readFileSync(join(source, 'config.json'), 'utf8'));
  writeFileSync(join(source, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: 100_000 }));
  expect((await compile(source, 'keep')).contextLength).toBe(2048);
});

describe('which file is compiled', () => {
  beforeEach(() => {
    const copy = (fixture: string, as: string) => {
      cpSync(join(modelFixture(fixture), 'model.onnx'), join(folder, as));
    };
    cpSync(modelFixture('genai/llama'), folder, { recursive: true });
    mkdirSync(join(folder, 'onnx'));
    renameSync(join(folder, 'model.onnx.data'), join(folder, 'onnx/model.onnx.data'));
    rmSync(join(folder, 'model.onnx'));
    copy('genai/llama', 'onnx/model.onnx');
  });

  test.each<[RequestedPrecision, string]>([
    ['int8', 'int8'],
    ['int8-blocks', 'int8-blocks'],
    ['float', 'float'],
    ['int4', 'int4'],
    ['keep', 'float'],
  ])('--precision %s gives %s', async (requested, precision) => {
    const manifest = await compile(folder, requested);
    expect(manifest).toMatchObject({
      precision,
      path: 'packed',
      maxPromptLen: 256,
      contextLength: 512,
      vocabSize: 512,
    });
    expect(readManifest(join(folder, 'out'))).toEqual(manifest);
  });
});

describe('auto', () => {
  const auto = (fixture: string, refused: Precision[] = []) =>
    compileModel({
      source: modelFixture(fixture),
      target: join(folder, 'out'),
      device: 'CPU',
      precision: 'auto',
      maxPromptLen: 256,
      refused,
    });

  test('measures two precisions and takes none that is far off', async () => {
    const { precision, choice } = await auto('genai/llama');
    expect(precision).toBe('int8');
    expect(choice.measured.map((one) => one.precision)).toEqual(['int8', 'int4']);
    expect(choice.measured[0]!.error).toBeLessThan(0.2);
    expect(choice.measured[1]!.error).toBeGreaterThan(0.4);
    expect(choice.measured.every(({ ms }) => ms > 0)).toBe(true);
    expect(choice.reason).toMatch(/^the fastest accurate precision on this CPU \(.+\): int8 .+; int4 /);
    expect(readdirSync(join(folder, 'out')).sort()).toEqual([
      'batch.onnx',
      MANIFEST_FILE,
      'model.onnx',
      'reference.json',
      'weights.bin',
    ]);
  });

  test.each<[string, Precision[], Precision]>([
    ['genai/llama-int4', ['int8'], 'int4'],
    ['genai/llama', ['int8', 'int8-blocks'], 'float'],
    ['genai/llama', ['int8', 'int4', 'int8-blocks'], 'float'],
  ])('of %s without %j is %s', async (fixture, refused, precision) => {
    const manifest = await auto(fixture, refused);
    expect(manifest.precision).toBe(precision);
    expect(manifest.choice.reason).toContain(`Refused at load for wrong numbers: ${refused.join(', ')}`);
    await (await openModel(join(folder, 'out'))).close();
  });

  test('measures more accurate precisions only where the first are far off', async () => {
    const { precision, choice } = await auto('genai/llama', ['int8']);
    expect(choice.measured.map((one) => one.precision)).toEqual(['int4', 'int8-blocks', 'float']);
    expect(choice.measured.every(({ ms }) => ms > 0)).toBe(true);
    const [int4, blocks, float] = choice.measured.map(({ error }) => error!);
    expect(int4).toBeGreaterThan(0.4);
    expect(blocks).toBeLessThan(0.2);
    expect(float).toBeLessThan(1e-4);
    // Which of the two precisions is faster depends on the CPU.
    expect(['int8-blocks', 'float']).toContain(precision);
  });

  test('a precision that was asked for and refused is not made again', async () => {
    const source = modelFixture('genai/llama');
    const options = { source, target: join(folder, 'out'), device: 'CPU', maxPromptLen: 256 } as const;
    await expect(compileModel({ ...options, precision: 'int8', refused: ['int8'] })).rejects.toThrow(
      /--precision auto/,
    );
  });
});

describe('at load', () => {
  // `published` needs the blocks of a GGUF file.
  test.each(PRECISIONS.filter((precision) => precision !== 'published'))(
    '%s with numbers unlike the reference is refused',
    async (precision) => {
      await compile(modelFixture('genai/llama'), precision);
      const file = join(folder, 'out/reference.json');
      const reference = JSON.parse(readFileSync(file, 'utf8')) as Reference;
      // Logits as wrong as those of 8-bit kernels that saturate, which are off by a third or more.
      const off = reference.logits.map((row) => row.map((logit, at) => logit + (at % 2 === 0 ? 4 : -4)));
      writeFileSync(file, JSON.stringify({ ...reference, logits: off }));
      const error = await openModel(join(folder, 'out')).catch((thrown: unknown) => thrown);
      expect(refusedPrecision(error)).toBe(precision);
    },
  );
});

describe('models that cannot be used', () => {
  test.each<[string, () => void, RegExp]>([
    ['no graph', () => rmSync(join(folder, 'in/model.onnx')), /no \.onnx file/],
    ['no weights', () => rmSync(join(folder, 'in/model.onnx.data')), /Download the model again\.$/],
    [
      'no model at all',
      () => writeFileSync(join(folder, 'in/model.onnx'), 'version https://git-lfs'),
      /cannot be used/,
    ],
  ])('%s', async (_, damage, message) => {
    cpSync(modelFixture('genai/smollm2'), join(folder, 'in'), { recursive: true });
    damage();
    await expect(compile(join(folder, 'in'), 'int8')).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(message),
    });
  });

  test('no configuration, and no rotary tables to tell the context from', async () => {
    cpSync(modelFixture('optimum/smollm2'), join(folder, 'in'), { recursive: true });
    rmSync(join(folder, 'in/config.json'));
    await expect(compile(join(folder, 'in'), 'int8')).rejects.toThrow(/how long its context is/);
  });

  test('a model for a device that is missing', async () => {
    await compile(modelFixture('genai/smollm2'), 'float');
    const file = join(folder, 'out', MANIFEST_FILE);
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), device: 'GPU' }));
    const missing = process.platform === 'win32' ? 'coreml' : 'dml';
    await expect(openModel(join(folder, 'out'), { providers: [missing] })).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(
        /^The model does not load on a GPU of this machine: .*backend not found\. See what is missing: assay doctor\./,
      ),
    });
  });

  test('a compiled folder that is incomplete', async () => {
    await compile(modelFixture('genai/smollm2'), 'float');
    rmSync(join(folder, 'out/weights.bin'));
    await expect(openModel(join(folder, 'out'))).rejects.toMatchObject({ code: 'engine_failed' });
    rmSync(join(folder, 'out', MANIFEST_FILE));
    await expect(openModel(join(folder, 'out'))).rejects.toMatchObject({ code: 'engine_failed' });
  });
});

test('progress counts up to the total, and an abort stops it', async () => {
  const steps: CompileProgress[] = [];
  const leaving = new AbortController();
  const options = {
    source: modelFixture('genai/phi3'),
    device: 'CPU',
    precision: 'int8',
    maxPromptLen: 256,
    onStep: (step: CompileProgress) => void steps.push(step),
  } as const;
  await compileModel({ ...options, target: join(folder, 'a') });
  expect(steps[0]).toMatchObject({ step: 'reading' });
  expect(steps.at(-1)).toMatchObject({ step: 'graph' });
  const weights = steps.filter(({ step }) => step === 'weights').map(({ done }) => done);
  expect(weights).toEqual(weights.toSorted((a, b) => a - b));
  leaving.abort(new Error('enough'));
  await expect(compileModel({ ...options, target: join(folder, 'b'), signal: leaving.signal })).rejects.toThrow(
    'enough',
  );
});

import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AssayError } from '../../../lib/errors.ts';
import { modelFixture } from '../../../tests/fixture.ts';
import { DataType } from './model.ts';
import { readModel } from './read-model.ts';
import { readAll } from './tensor-data.ts';
import { bytesField, encodeFields, varintField, type WireField } from './wire.ts';
import { writeModel } from './write-model.ts';

const RUNS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 300);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-onnx-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a model with one weight, made from the given TensorProto fields, and returns its path. */
function modelWith(...tensor: WireField[]): string {
  const file = join(folder, 'model.onnx');
  const graph = encodeFields([bytesField(5, encodeFields(tensor))]);
  writeFileSync(file, encodeFields([varintField(1, 10), bytesField(7, graph)]));
  return file;
}

function external(entries: Record<string, string>): WireField[] {
  return [
    varintField(1, 4),
    varintField(2, DataType.float),
    bytesField(8, 'w'),
    ...Object.entries(entries).map(([key, value]) =>
      bytesField(13, encodeFields([bytesField(1, key), bytesField(2, value)])),
    ),
    varintField(14, 1),
  ];
}

describe('what is read is written again', () => {
  test.each(['genai/qwen3/model.onnx', 'optimum/gemma3/onnx/model.onnx'])('%s', (name) => {
    const model = readModel(modelFixture(name));
    const copy = join(folder, 'copy.onnx');
    writeModel(copy, model, []);
    const again = readModel(copy);
    expect(again.graph.nodes).toEqual(model.graph.nodes);
    expect(again.graph.inputs).toEqual(model.graph.inputs);
    expect(again.graph.outputs).toEqual(model.graph.outputs);
    expect(again.opsets).toEqual(model.opsets);
    expect(again.rest).toEqual(model.rest);
  });
});

test('integers of 64 bits that are written as numbers, not as bytes, are exact', () => {
  const largest = Uint8Array.of(...Array(8).fill(0xff), 0x7f);
  const smallest = Uint8Array.of(...Array(9).fill(0x80), 0x01);
  const minusOne = Uint8Array.of(...Array(9).fill(0xff), 0x01);
  const numbers = bytesField(7, Buffer.concat([largest, smallest, minusOne]));
  const { graph } = readModel(
    modelWith(varintField(1, 3), varintField(2, DataType.int64), bytesField(8, 'w'), numbers),
  );
  const bytes = readAll(graph.initializers.get('w')!);
  expect([...new BigInt64Array(bytes.buffer)]).toEqual([2n ** 63n - 1n, -(2n ** 63n), -1n]);
});

test('weights that are inputs, too, are no inputs, as from IR version 4 on', () => {
  const file = join(folder, 'model.onnx');
  const weight = [
    varintField(1, 1),
    varintField(2, DataType.float),
    bytesField(8, 'w'),
    bytesField(9, new Uint8Array(4)),
  ];
  const input = (name: string) => bytesField(11, encodeFields([bytesField(1, name)]));
  const graph = encodeFields([input('w'), input('input_ids'), bytesField(5, encodeFields(weight))]);
  writeFileSync(file, encodeFields([varintField(1, 3), bytesField(7, graph)]));
  const model = readModel(file);
  expect(model.graph.inputs.map(({ name }) => name)).toEqual(['input_ids']);
  expect(model.rest).toEqual([varintField(1, 4)]);
});

describe('files that cannot be used', () => {
  test.each<[string, WireField[], RegExp]>([
    ['a path up', external({ location: '../weights.bin' }), /outside the model's folder/],
    ['a hidden path up', external({ location: 'a/../../weights.bin' }), /outside the model's folder/],
    ['an absolute path', external({ location: '/etc/passwd' }), /outside the model's folder/],
    ['a Windows path', external({ location: 'C:\\weights.bin' }), /outside the model's folder/],
    ['an empty path', external({ location: '' }), /outside the model's folder/],
    ['a missing file', external({ location: 'gone.bin' }), /missing/],
    ['a range beyond the end', external({ location: 'model.onnx', offset: '0', length: '100000' }), /beyond the end/],
    ['a negative offset', external({ location: 'model.onnx', offset: '-8', length: '16' }), /beyond the end/],
    ['an offset that is no number', external({ location: 'model.onnx', offset: 'x' }), /beyond the end/],
    [
      'a shape that does not fit',
      [varintField(1, 5), varintField(2, 1), bytesField(8, 'w'), bytesField(9, new Uint8Array(16))],
      /16 bytes, but its shape needs 20/,
    ],
    ['a negative dimension', [varintField(1, -4), varintField(2, 1), bytesField(9, new Uint8Array(16))], /impossible/],
    ['a string weight', [varintField(1, 1), varintField(2, 8)], /unsupported type 8/],
  ])('%s', (_, tensor, message) => {
    const file = modelWith(...tensor);
    expect(() => readModel(file)).toThrow(message);
    expect(() => readModel(file)).toThrow(AssayError);
  });

  test('a field of negative length, which would lead back to its own beginning', () => {
    const file = join(folder, 'model.onnx');
    // Field 1 with the length -11: tag and length have 11 bytes.
    writeFileSync(file, Uint8Array.of(0x0a, 0xf5, ...Array(8).fill(0xff), 0x01));
    expect(() => readModel(file)).toThrow(/ends in the middle of a field/);
  });

  test('no file, an empty file, a folder', () => {
    expect(() => readModel(join(folder, 'none.onnx'))).toThrow(AssayError);
    writeFileSync(join(folder, 'empty.onnx'), '');
    expect(() => readModel(join(folder, 'empty.onnx'))).toThrow(/no graph/);
    mkdirSync(join(folder, 'folder.onnx'));
    expect(() => readModel(join(folder, 'folder.onnx'))).toThrow(AssayError);
  });

  test('weights behind a link, as in a hub cache, are read', () => {
    cpSync(modelFixture('genai/qwen3'), join(folder, 'blobs'), { recursive: true });
    mkdirSync(join(folder, 'snapshot'));
    for (const name of ['model.onnx', 'model.onnx.data']) {
      symlinkSync(join('../blobs', name), join(folder, 'snapshot', name));
    }
    expect(readModel(join(folder, 'snapshot/model.onnx')).graph.initializers.size).toBeGreaterThan(0);
  });

  test('weights cut short', () => {
    cpSync(modelFixture('genai/qwen3'), folder, { recursive: true });
    truncateSync(join(folder, 'model.onnx.data'), 5000);
    expect(() => readModel(join(folder, 'model.onnx'))).toThrow(/Download the model again\.$/);
  });

  test(`${RUNS} damaged graphs are read or refused, and nothing else`, () => {
    const whole = readFileSync(modelFixture('genai/qwen3/model.onnx'));
    cpSync(modelFixture('genai/qwen3/model.onnx.data'), join(folder, 'model.onnx.data'));
    const file = join(folder, 'model.onnx');
    const edit = fc.record({ at: fc.nat(whole.length - 1), byte: fc.nat(255) });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 8 }), fc.option(fc.nat(whole.length)), (edits, cut) => {
        const damaged = Buffer.from(whole);
        for (const { at, byte } of edits) damaged[at] = byte;
        writeFileSync(file, damaged.subarray(0, cut ?? damaged.length));
        try {
          readModel(file);
        } catch (error) {
          expect(error).toBeInstanceOf(AssayError);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

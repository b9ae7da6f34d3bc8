import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { bytesField, encodeFields, varintField } from './format/wire.ts';

/*
 * Weights of the graph itself may only be files beside it (read-model.ts). The values of `Constant` nodes are read by
 * onnxruntime alone, so this pins that it refuses files elsewhere, too.
 */

const FLOAT = 1;
const folder = mkdtempSync(join(tmpdir(), 'assay-constants-'));
const secret = join(folder, 'secret.bin');
writeFileSync(secret, new Uint8Array(16));
mkdirSync(join(folder, 'model'));
writeFileSync(join(folder, 'model/weights.bin'), new Uint8Array(16));

/** Writes a model whose output is a `Constant` of four floats from the file `location`, and returns its path. */
function modelWith(location: string, inBody = false): string {
  const text = (field: number, value: string) => bytesField(field, value);
  const entries = { location, offset: '0', length: '16' };
  const tensor = encodeFields([
    varintField(1, 4),
    varintField(2, FLOAT),
    text(8, 'c'),
    ...Object.entries(entries).map(([key, value]) => bytesField(13, encodeFields([text(1, key), text(2, value)]))),
    varintField(14, 1),
  ]);
  const constant = encodeFields([
    text(2, 'y'),
    text(4, 'Constant'),
    bytesField(5, encodeFields([text(1, 'value'), bytesField(5, tensor), varintField(20, 4)])),
  ]);
  const shape = encodeFields([bytesField(1, encodeFields([varintField(1, 4)]))]);
  const type = encodeFields([bytesField(1, encodeFields([varintField(1, FLOAT), bytesField(2, shape)]))]);
  const output = (name: string) => bytesField(12, encodeFields([text(1, name), bytesField(2, type)]));
  const branch = encodeFields([bytesField(1, constant), text(2, 'body'), output('y')]);
  const graphAttribute = (name: string) =>
    bytesField(5, encodeFields([text(1, name), bytesField(6, branch), varintField(20, 5)]));
  const condition = encodeFields([varintField(2, 9), text(8, 'when'), bytesField(9, Uint8Array.of(1))]);
  const graph = inBody
    ? [
        bytesField(
          1,
          encodeFields([
            text(1, 'when'),
            text(2, 'out'),
            text(4, 'If'),
            graphAttribute('then_branch'),
            graphAttribute('else_branch'),
          ]),
        ),
        text(2, 'g'),
        bytesField(5, condition),
        output('out'),
      ]
    : [bytesField(1, constant), text(2, 'g'), output('y')];
  const file = join(folder, 'model', `${inBody ? 'if' : 'plain'}.onnx`);
  const opset = encodeFields([text(1, ''), varintField(2, 17)]);
  writeFileSync(file, encodeFields([varintField(1, 8), bytesField(7, encodeFields(graph)), bytesField(8, opset)]));
  return file;
}

test.each([
  ['an absolute path', secret, false],
  ['a path up', '../secret.bin', false],
  ['an absolute path in the body of an If', secret, true],
  ['a path up in the body of an If', '../secret.bin', true],
])('onnxruntime refuses a constant from %s', async (_, location, inBody) => {
  await expect(InferenceSession.create(modelWith(location, inBody))).rejects.toThrow(/external|path|directory/i);
});

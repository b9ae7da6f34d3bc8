import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readMediaFamily } from './read-family.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'assay-family-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const genai = { model: { type: 'gemma4', vision: {}, decoder: {} } };
const step = { operation: { type: 'Gemma4ImageTransform', attrs: { patch_size: 16 } } };

test.each([
  [
    'transformers.js',
    { 'config.json': { model_type: 'gemma4' } },
    "The model's config.json, preprocessor_config.json or processor_config.json does not say how gemma4",
  ],
  [
    'onnxruntime-genai',
    { 'genai_config.json': genai, 'image_processor.json': { processor: { transforms: [step] } } },
    "The model's genai_config.json, image_processor.json or processor_config.json does not say how gemma4",
  ],
])('names the files of the layout of %s that lack something', async (_, files, message) => {
  for (const [name, value] of Object.entries(files)) writeFileSync(join(dir, name), JSON.stringify(value));
  await expect(readMediaFamily(dir, 4096)).rejects.toThrow(message);
});

test('returns null for a family that is not known', async () => {
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ model_type: 'llama' }));
  expect(await readMediaFamily(dir, 4096)).toBeNull();
});

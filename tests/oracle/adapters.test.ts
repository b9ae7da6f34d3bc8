import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kvShape } from '../../runtime/engine/model.ts';
import { logitsOf } from '../../runtime/engine/self-check/self-check.ts';
import { BACKBONE_FOLDER } from '../../runtime/store/model-files.ts';
import { fixture } from '../fixture.ts';
import { safetensors } from '../hub/checkpoint.ts';
import { compileFixture, continueGreedily, goldenCases } from './fixtures.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-adapters-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Puts a checkpoint and its adapter into a folder, as a compile finds them. Returns its path. */
function adapted(name: string, change: (adapter: string) => void = () => undefined): string {
  const source = mkdtempSync(join(folder, 'source-'));
  cpSync(fixture(`families/safetensors/${name}`), join(source, BACKBONE_FOLDER), { recursive: true });
  cpSync(fixture(`families/lora/${name}`), source, { recursive: true });
  change(source);
  return source;
}

test.each(['qwen3', 'qwen3.5-text'])('a LoRA adapter of %s answers as PEFT does', async (name) => {
  const model = await compileFixture(adapted(name), 'float');
  for (const { prompt, greedy, logits = [] } of goldenCases(`../families/lora/${name}`)) {
    expect(await continueGreedily(model, prompt, greedy.length)).toEqual(greedy);
    const probe = { tokens: prompt, positions: [prompt.length - 1], stride: 1 };
    const [own = []] = await logitsOf(model.forward, kvShape(model.manifest), probe);
    for (const [token, wanted] of logits.entries()) expect(own[token]).toBeCloseTo(wanted, 3);
  }
  await model.close();
});

test('an adapter with a vector of DoRA is refused', async () => {
  const vector = 'base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector';
  const source = adapted('qwen3', (folder) =>
    writeFileSync(join(folder, 'adapter_model.safetensors'), safetensors([[vector, [64]]])),
  );
  await expect(compileFixture(source, 'float')).rejects.toThrow(/lora_magnitude_vector", which is not known here/);
});

test.each<[string, object]>([
  ['a module that its targets leave out', { target_modules: ['q_proj', 'v_proj'] }],
  ['a layer that its layers leave out', { layers_to_transform: [1] }],
])('an adapter that changes %s is refused', async (_, part) => {
  const source = adapted('qwen3', (folder) => {
    const file = join(folder, 'adapter_config.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...part }));
  });
  await expect(compileFixture(source, 'float')).rejects.toThrow(
    /its adapter changes .*, which adapter_config\.json leaves out/,
  );
});

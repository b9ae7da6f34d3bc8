import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Part } from '../../lib/contract/conversation.ts';
import { type Machine, MODEL, newCall, startMachine } from '../engine-process/machine.ts';
import { fixture } from '../fixture.ts';
import { mediaFile } from './golden.ts';

/** The tiny SmolVLM as a published model that says it is a Gemma 3. */
const source = mkdtempSync(join(tmpdir(), 'assay-gemma3-'));
let machine: Machine;
let compiled: string[];
beforeAll(async () => {
  cpSync(fixture('media/smolvlm'), source, { recursive: true });
  const file = join(source, 'config.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), model_type: 'gemma3' }));
  machine = await startMachine(source, { edit: (folder) => (compiled = readdirSync(folder)) });
}, 60_000);
afterAll(async () => {
  await machine?.close();
  rmSync(source, { recursive: true });
});

const decide = (media: readonly Part[]) => {
  const tasks = [{ type: 'decide' as const, name: 'a', question: 'Is it?', options: ['yes', 'no'] }];
  const batch = { model: MODEL, input: { context: 'a cat' }, media: [], tasks, temperature: 0, maxOutputTokens: 16 };
  return machine.backend.runTasks({ ...batch, media: media.filter((part) => part.type !== 'text') }, newCall());
};

it('a model in parts that says it is a Gemma 3 answers about text', async () => {
  const { answers } = await decide([]);
  expect(JSON.parse(answers[0]?.json ?? '')).toHaveProperty('value');
});

it('its encoder, which is not used, is not compiled', () => {
  expect(compiled).toContain('weights.bin');
  expect(compiled.filter((name) => name.startsWith('encoder'))).toEqual([]);
});

it('and refuses an image with the reason and what to do', async () => {
  const image: Part = { type: 'image', source: { type: 'base64', ...mediaFile('wide.png') }, param: 'images[0]' };
  await expect(decide([image])).rejects.toMatchObject({
    code: 'unsupported_modality',
    param: 'images[0]',
    message: expect.stringMatching(/in both directions.*load a model of the SmolVLM or Qwen-VL family/u),
  });
});

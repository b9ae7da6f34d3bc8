import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Part } from '../../lib/conversation.ts';
import { type Machine, MODEL, newCall, startMachine } from '../engine-process/machine.ts';
import { mediaFile } from './golden.ts';

let machine: Machine;
beforeAll(async () => {
  machine = await startMachine('media/smolvlm', { edit: (folder) => setModelType(folder, 'gemma3') });
}, 60_000);
afterAll(() => machine?.close());

function setModelType(folder: string, model_type: string): void {
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), model_type }));
}

const decide = (media: readonly Part[]) => {
  const tasks = [{ type: 'decide' as const, name: 'a', question: 'Is it?', options: ['yes', 'no'] }];
  const batch = { model: MODEL, input: { context: 'a cat' }, media: [], tasks, temperature: 0, maxOutputTokens: 16 };
  return machine.backend.runTasks({ ...batch, media: media.filter((part) => part.type !== 'text') }, newCall());
};

it('a model in parts that says it is a Gemma 3 answers about text', async () => {
  const { answers } = await decide([]);
  expect(JSON.parse(answers[0]?.json ?? '')).toHaveProperty('value');
});

it('and refuses an image with the reason and what to do', async () => {
  const image: Part = { type: 'image', source: { type: 'base64', ...mediaFile('wide.png') }, param: 'images[0]' };
  await expect(decide([image])).rejects.toMatchObject({
    code: 'unsupported_modality',
    param: 'images[0]',
    message: expect.stringMatching(/in both directions.*load a model of the SmolVLM or Qwen-VL family/u),
  });
});

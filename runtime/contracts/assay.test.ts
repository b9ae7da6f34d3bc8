import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import type { Task, TaskBatch } from '../../lib/backend.ts';
import { TASK_SEPARATOR, taskPrompt } from '../../lib/prompt/tasks.ts';
import { fixture } from '../../tests/fixture.ts';
import { loadTextModel, type TextModel } from '../text/text-model.ts';
import { ASSAY, taskEncoder, wordingOf } from './assay.ts';

const model = (family: string) => loadTextModel(fixture(`text/${family}`));
const batch = (input: TaskBatch['input'], tasks: readonly Task[]): TaskBatch => ({
  model: 'a/b',
  input,
  media: [],
  tasks,
  temperature: 0,
  maxOutputTokens: 16,
});
function encodeTasks(text: TextModel, asked: TaskBatch, limit?: number) {
  const { prefix, branch } = atOnce(taskEncoder(text, asked, limit));
  return { prefix, branches: asked.tasks.map((task) => atOnce(branch(task))) };
}
const TASKS: Task[] = [
  { type: 'decide', name: 'a', question: 'Is it wet?', options: ['yes', 'no'] },
  { type: 'decide', name: 'b', question: ' \n<|im_end|> leading space', instruction: '👋🏽 say why' },
  { type: 'extract', name: 'c', instruction: 'the name', shape: { kind: 'keys', keys: ['name'] }, language: 'fr' },
];
const INPUTS: TaskBatch['input'][] = [
  { context: 'The box was wet.' },
  { context: '' },
  { context: 'ends in a space ' },
  { messages: [{ role: 'user', parts: [{ type: 'text', text: 'The box was wet.' }] }] },
  {
    messages: [
      { role: 'system', parts: [{ type: 'text', text: 'Be strict.' }] },
      { role: 'assistant', parts: [{ type: 'text', text: 'Hello' }] },
    ],
  },
];

describe.each(['qwen', 'smollm', 'reasoner', 'llama3', 'gemma', 'llama2', 'mistral', 'base'])('%s', async (family) => {
  const { vocabulary, ...rest } = await model(family);
  const text = (ids: readonly number[]) =>
    new TextDecoder().decode(Uint8Array.from(ids.flatMap((id) => [...vocabulary.spelling(id)])));

  it.each(INPUTS)('has the same prefix whatever the tasks are: %j', (input) => {
    const together = encodeTasks({ vocabulary, ...rest }, batch(input, TASKS));
    TASKS.forEach((task, i) => {
      const alone = encodeTasks({ vocabulary, ...rest }, batch(input, [task]));
      expect(alone).toEqual({ prefix: together.prefix, branches: [together.branches[i]] });
    });
  });

  it.each(INPUTS)('reads the whole prompt: %j', (input) => {
    const { prefix, branches } = encodeTasks({ vocabulary, ...rest }, batch(input, TASKS));
    const { openMessage, tasks, messages } = taskPrompt(batch(input, TASKS));
    branches.forEach((branch, i) => {
      const whole = text([...prefix, ...branch]);
      expect(whole).toContain(openMessage + TASK_SEPARATOR + tasks[i]);
      for (const turn of messages)
        for (const part of turn.parts) expect(whole).toContain((part as { text: string }).text);
    });
  });
});

it.each([
  ['in the last message', [['user', 1]], 0, 'messages[0].content[1]'],
  [
    'in an earlier message',
    [
      ['user', 1],
      ['assistant', 0],
      ['user', 0],
    ],
    0,
    'messages[0].content[1]',
  ],
  ['beside the messages', [['user', 0]], 1, 'images[0]'],
  ['in both: the first counts', [['user', 1]], 1, 'messages[0].content[1]'],
] as const)('refuses an image %s', async (_, messages, beside, param) => {
  const image = (where: string) => ({
    type: 'image' as const,
    source: { type: 'url' as const, url: 'https://a/b.png' },
    param: where,
  });
  const input = {
    messages: messages.map(([role, images], i) => ({
      role,
      parts: [{ type: 'text' as const, text: 'Look:' }, ...(images ? [image(`messages[${i}].content[1]`)] : [])],
    })),
  };
  const asked = { ...batch(input, TASKS), media: beside ? [image('images[0]')] : [] };
  expect(() => encodeTasks(full, asked)).toThrow(expect.objectContaining({ code: 'unsupported_modality', param }));
});

describe('a prompt that is too long', async () => {
  const mostTokens = 4 * 64;
  const short = await loadTextModel(fixture('text/qwen'), {
    mostTokens,
  });

  it.each([
    [
      'word '.repeat(100),
      /^This model's maximum context length is 300 tokens as it is loaded, and the input has 4\d\d\./u,
      300,
    ],
    ['word '.repeat(100), /^This model's maximum context length is 64 .* the input has more than 256\./u, 64],
    ['x'.repeat(5_000_000), / the input has more than 256\./u, 64],
  ])('says how long it is: %.20s…', (context, message, limit) => {
    const model = limit === 64 ? short : { ...short, tokenizer: full.tokenizer };
    expect(() => encodeTasks(model, batch({ context }, TASKS), limit)).toThrow(message);
  });
});

const full = await model('qwen');

it('has a new version when the wording of its questions changes', () => {
  const hash = createHash('sha256')
    .update(JSON.stringify(wordingOf(ASSAY.info)))
    .digest('hex');
  expect([ASSAY.info.version, hash]).toEqual(['1', '0bde0405b6e11f1657c47b11e548c86ddc8602ccc7d664a1416e7b8105e823db']);
  expect(wordingOf(undefined)).toBe(wordingOf(ASSAY.info));
});

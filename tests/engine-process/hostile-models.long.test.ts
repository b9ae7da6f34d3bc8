import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Call } from '../../lib/backend.ts';
import { type Machine, MODEL, newCall, startMachine } from './machine.ts';

let machine: Machine | null = null;
afterEach(async () => {
  await machine?.close();
  machine = null;
});

/** Changes a JSON file of a compiled model. */
const editJson = (name: string, change: (json: Record<string, unknown>) => void) => (folder: string) => {
  const json = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  change(json);
  writeFileSync(join(folder, name), JSON.stringify(json));
};

async function decide(context: string, call: Call = newCall()): Promise<unknown> {
  const tasks = [{ type: 'decide' as const, name: 'a', question: 'Is it?', options: ['yes', 'no'] }];
  return machine!.backend.runTasks(
    { model: MODEL, input: { context }, media: [], tasks, temperature: 0, maxOutputTokens: 16 },
    call,
  );
}

/** Splits words by an expression whose work doubles with each further `a`. */
const catastrophic = editJson('tokenizer.json', (json) => {
  json.pre_tokenizer = { type: 'Split', pattern: { Regex: '(a+)+$' }, behavior: 'Isolated', invert: false };
});
const STUCK = `${'a'.repeat(60)}!`;

describe('a tokenizer that hangs on a text', () => {
  it('fails the request, and the engine is there again', async () => {
    machine = await startMachine('optimum/qwen3', { edit: catastrophic, silenceLimits: { text: 1_500 } });
    await expect(decide(STUCK)).rejects.toMatchObject({ code: 'engine_failed' });
    expect(machine.engine.status().reason).toMatch(/made no progress with the model's tokenizer/u);
    await expect.poll(() => machine?.engine.status().state).toBe('loaded');
  });

  it('gives way to the next load at once', async () => {
    machine = await startMachine('optimum/qwen3', { edit: catastrophic });
    const stuck = decide(STUCK).catch((error: Error) => error);
    await expect.poll(() => machine?.engine.status().rssBytes).toBeGreaterThan(0);
    // Without a limit for texts it had that of a step, two minutes: longer than this test may take.
    await machine.load();
    expect(await stuck).toMatchObject({ code: 'engine_failed' });
  });
});

describe('a model that does not load', () => {
  it.each<[string, (folder: string) => void, RegExp]>([
    [
      'with a template without end',
      (folder) =>
        writeFileSync(
          join(folder, 'chat_template.jinja'),
          '{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}',
        ),
      /chat template/u,
    ],
    [
      'with four million merges',
      editJson('tokenizer.json', (json) => {
        (json.model as { merges: unknown }).merges = Array(4_100_000).fill('a b');
      }),
      /tokenizer\.json has too many members/u,
    ],
  ])('%s ends with its reason', async (_, edit, message) => {
    await expect(startMachine('optimum/qwen3', { edit })).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(message),
    });
  });
});

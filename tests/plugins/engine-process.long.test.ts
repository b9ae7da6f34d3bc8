import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Task, TaskBatch } from '../../lib/backend.ts';
import { type Machine, MODEL, newCall, startMachine } from '../engine-process/machine.ts';
import { qnnEmulator } from './installed.ts';

/** 50 by hand. */
const KILLS = Number(process.env.ASSAY_PLUGIN_KILLS ?? 1);
const TASKS: Task[] = [
  { type: 'decide', name: 'wet', question: 'Is it wet?', options: ['yes', 'no'] },
  { type: 'decide', name: 'late', question: 'Is it late?', options: ['yes', 'no', 'unknown'] },
  { type: 'extract', name: 'who', instruction: 'name', shape: { kind: 'keys', keys: ['name'] } },
];
const batch = (context: string): TaskBatch => ({
  model: MODEL,
  input: { context },
  media: [],
  tasks: TASKS,
  temperature: 0,
  maxOutputTokens: 12,
});

const qnn = await qnnEmulator();

describe.skipIf(!qnn)("the engine process on the emulator of Qualcomm's NPU", () => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await startMachine('optimum/llama', { maxPromptLen: 256, plugin: qnn! });
  }, 300_000);
  afterAll(() => machine.close());

  test('compiles, loads and answers, and says which device ran', async () => {
    const { answers } = await machine.backend.runTasks(batch('The box was wet.'), newCall());
    expect(machine.engine.status()).toMatchObject({ state: 'loaded', device: 'NPU' });
    expect(['yes', 'no']).toContain(JSON.parse(answers[0]!.json).value);
    expect(['yes', 'no', 'unknown']).toContain(JSON.parse(answers[1]!.json).value);
    expect(Object.keys(JSON.parse(answers[2]!.json))).toEqual(['name']);
  });

  test(`survives ${KILLS} kills during runs`, { timeout: 1_800_000 }, async () => {
    const outcomes = { answered: 0, failed: 0 };
    for (let kill = 0; kill < KILLS; kill++) {
      // An answer, so that the next restart is at once.
      await machine.backend.runTasks(batch('The box was wet.'), newCall());
      const { pid } = machine.engine.status();
      const running = machine.backend.runTasks(batch(`Parcel ${kill} was wet.`), newCall()).then(
        () => outcomes.answered++,
        (error: { code?: string }) => {
          expect(error.code).toBe('engine_failed');
          outcomes.failed++;
        },
      );
      // From the tokenizer to the middle of a native call.
      await new Promise((resume) => setTimeout(resume, (kill * 37) % 400));
      process.kill(pid!, 'SIGKILL');
      await running;
      await expect.poll(() => machine.engine.status().state, { timeout: 60_000, interval: 20 }).toBe('loaded');
    }
    expect(outcomes.answered + outcomes.failed).toBe(KILLS);
    expect(outcomes.failed).toBeGreaterThan(0);
    await machine.backend.runTasks(batch('The box was wet.'), newCall());
    expect(machine.engine.status().restarts).toBe(KILLS);
  });
});

test.skipIf(!qnn)('a plugin whose library does not load is an error with what to do', async () => {
  const broken = { ...qnn!, library: import.meta.filename };
  await expect(startMachine('optimum/llama', { plugin: broken })).rejects.toMatchObject({
    code: 'engine_failed',
    message: expect.stringContaining('does not load on this machine'),
  });
});

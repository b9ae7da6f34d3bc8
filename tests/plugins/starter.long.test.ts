import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { addAnswer, noScores, type Scores } from '../../benchmarks/quality/score.ts';
import { readTestSet, type Text } from '../../benchmarks/quality/test-set.ts';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { type Machine, MODEL, startMachine } from '../engine-process/machine.ts';
import { openvinoCpu, qnnEmulator } from './installed.ts';

/** Texts of the natural test set; `Infinity` for all of them, by hand. */
const TEXTS = Number(process.env.ASSAY_PLUGIN_TEXTS ?? 4);
/** Requests to the emulator, by hand: it needs minutes for the starter. Small models run on it in the other suites. */
const EMULATED = Number(process.env.ASSAY_EMULATED_REQUESTS ?? 0);
const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
const STARTER = fileURLToPath(new URL('../../models/starter', import.meta.url));

const openvino = await openvinoCpu();
const qnn = await qnnEmulator();

const started: Machine[] = [];
afterEach(async () => {
  for (const machine of started.splice(0)) await machine.close();
});

async function start(options: Parameters<typeof startMachine>[1] = {}): Promise<Machine> {
  const machine = await startMachine(STARTER, { maxPromptLen: 512, timeoutMs: 600_000, ...options });
  started.push(machine);
  return machine;
}

/** Answers a text's tasks, as a caller of `POST /v1/tasks` gets them. */
async function answersOf({ backend }: Machine, { context, tasks }: Text): Promise<unknown[]> {
  const response = await createApp({ backend, keys, apis: ['decisions'] }).request('/v1/tasks', {
    method: 'POST',
    headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
    body: JSON.stringify({
      model: MODEL,
      context,
      max_output_tokens: 96 * tasks.length,
      tasks: tasks.map(({ expected: _, corrected: __, skill: ___, ...task }, i) => ({ ...task, name: `t${i}` })),
    }),
  });
  expect(response.status).toBe(200);
  const { results } = (await response.json()) as { results: Record<string, { value?: unknown }> };
  return tasks.map((task, i) => (task.type === 'decide' ? results[`t${i}`]?.value : results[`t${i}`]));
}

async function scoresOf(machine: Machine, texts: readonly Text[]): Promise<Scores> {
  const scores = noScores();
  for (const text of texts) {
    const answers = await answersOf(machine, text);
    for (const [i, task] of text.tasks.entries()) addAnswer(scores, task, answers[i]);
  }
  return scores;
}

describe.skipIf(!openvino)("the starter model on OpenVINO's CPU device", { timeout: 1_800_000 }, () => {
  test('answers the natural test set as well as on the CPU', async () => {
    const texts = (await readTestSet('natural')).slice(0, TEXTS);
    const cpu = await scoresOf(await start(), texts);
    const device = await scoresOf(
      await start({ plugin: openvino!, entry: new URL('intel-child.ts', import.meta.url) }),
      texts,
    );
    console.log(JSON.stringify({ texts: texts.length, cpu, device }));
    for (const kind of ['decide', 'fields'] as const) {
      // A point, or one answer where there are fewer than a hundred.
      const allowed = Math.max(1, cpu[kind].total / 100);
      expect(Math.abs(device[kind].right - cpu[kind].right), kind).toBeLessThanOrEqual(allowed);
    }
  });
});

describe.skipIf(!qnn || EMULATED === 0)(
  "the starter model on the emulator of Qualcomm's NPU",
  { timeout: 1_800_000 },
  () => {
    test(`decides ${EMULATED} requests as on the CPU`, async () => {
      const texts = (await readTestSet('natural'))
        .map((text) => ({ ...text, tasks: text.tasks.filter(({ type }) => type === 'decide').slice(0, 2) }))
        .filter(({ tasks }) => tasks.length > 0)
        .slice(0, EMULATED);
      const [cpu, device] = [await start(), await start({ plugin: qnn! })];
      for (const text of texts) expect(await answersOf(device, text), text.context).toEqual(await answersOf(cpu, text));
    });
  },
);

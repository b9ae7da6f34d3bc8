import { afterAll, beforeAll, expect, test } from 'vitest';
import { compileFixture } from '../../../tests/oracle/fixtures.ts';
import { Sequence } from '../../engine/cache/sequence.ts';
import { type EngineModel, kvShape } from '../../engine/model.ts';

const TOKENS = [5, 17, 3, 99, 42, 8, 64, 12, 7];

/** GPT-OSS has sinks; Qwen 3 does not, so its graph can also compute branches apart from their prefix. */
const [SINKS, PLAIN] = ['../families/genai/gpt-oss', 'genai/qwen3'] as const;
const compiled = new Map<string, { slots: EngineModel; single: EngineModel }>();
beforeAll(async () => {
  for (const fixture of [SINKS, PLAIN]) {
    const slots = await compileFixture(fixture, 'int8', undefined, { secondGraph: false });
    compiled.set(fixture, { slots, single: await compileFixture(fixture, 'int8', undefined, { slots: 1 }) });
  }
});
afterAll(() => Promise.all([...compiled.values()].flatMap(({ slots, single }) => [slots.close(), single.close()])));

test('the fixtures have a graph of each kind', () => {
  expect([SINKS, PLAIN].map((fixture) => compiled.get(fixture)!.slots.forward.apart)).toEqual([false, true]);
});

test.each([SINKS, PLAIN])(
  '%s: one sequence gets the same bits as from a graph without slots, and its KV is written in place',
  async (fixture) => {
    const models = compiled.get(fixture)!;
    const [slots, single] = [await readAlone(models.slots, TOKENS), await readAlone(models.single, TOKENS)];
    expect(models.slots.forward.slots).toBe(8);
    expect(slots.logits).toEqual(single.logits);
    expect(slots.sequence.layers).toEqual(single.sequence.layers);
  },
);

test.each([SINKS, PLAIN])(
  '%s: sequences that share a run get what each gets alone, whichever slot they are in',
  async (fixture) => {
    const models = compiled.get(fixture)!;
    const { manifest, forward } = models.slots;
    const texts = [TOKENS, TOKENS.toReversed(), TOKENS.slice(2)];
    const alone = await Promise.all(texts.map(async (text) => (await readAlone(models.single, text)).logits));
    const sequences = texts.map((text) => newSequence(manifest, text.slice(0, -1)));
    await forward.run(sequences.map((sequence) => ({ sequence, start: 0, rows: [] })));
    for (const [index, sequence] of sequences.entries()) sequence.append(texts[index]!.at(-1)!, sequence.length - 1);
    const rows = await forward.run(
      sequences.map((sequence) => ({ sequence, start: sequence.length - 1, rows: [sequence.length - 1] })),
    );
    for (const [index, logits] of alone.entries()) {
      const own = rows.subarray(index * manifest.vocabSize, (index + 1) * manifest.vocabSize);
      const error = Math.max(...own.map((value, token) => Math.abs(value - logits[token]!)));
      expect(error).toBeLessThan(0.05);
    }
  },
);

/** Reads a text in two runs, the second with its last token only, and returns the logits after it. */
async function readAlone({ manifest, forward }: EngineModel, text: readonly number[]) {
  const sequence = newSequence(manifest, text.slice(0, -1));
  await forward.run([{ sequence, start: 0, rows: [] }]);
  const start = sequence.length;
  sequence.append(text.at(-1)!, start - 1);
  const logits = (await forward.run([{ sequence, start, rows: [start] }])).slice();
  return { sequence, logits };
}

function newSequence(manifest: EngineModel['manifest'], tokens: readonly number[]): Sequence {
  const sequence = new Sequence(kvShape(manifest), 32);
  for (const token of tokens) sequence.append(token, sequence.length - 1);
  return sequence;
}

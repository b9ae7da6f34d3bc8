import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { writeCheckpoint } from '../../benchmarks/models/checkpoint.ts';
import { Noise } from '../../benchmarks/models/noise.ts';
import { at } from '../../lib/at.ts';
import { KERNEL_BLOCKS, kernelFamily } from '../../runtime/compile/kernels.ts';
import type { BranchSpec } from '../../runtime/engine/job-spec.ts';
import type { EngineModel } from '../../runtime/engine/model.ts';
import { Random } from '../../runtime/engine/random.ts';
import { modelFixture } from '../fixture.ts';
import { writeFamily } from './family-fixture.ts';
import { answer, compileFixture, engineFor, GREEDY } from './fixtures.ts';
import { writeGgufFixture } from './gguf-fixture.ts';
import { PatternConstraint } from './pattern-constraint.ts';

const random = new Random(5);
const tokens = (length: number) => Array.from({ length }, () => 10 + Math.floor(random.uniform() * 200));

const LIMITS = { longSuffix: 44 };

/**
 * Returns a question with options, or one that is answered with eight tokens. Of two the options are long, three are
 * long themselves, and one has a long answer: these take several runs, beside which the others begin or end.
 */
function question(index: number): BranchSpec {
  const lengths = index === 8 ? [128, 2, 134] : [0, 1, 2].map(() => (index === 4 ? 60 : 1 + (index % 3)));
  // No option begins another.
  const paths = lengths.map((length, option) => [210 + option, ...tokens(length - 1), 9]);
  // After the option of every third question comes a text.
  const steps = [{ among: tokens(20), times: 4 }];
  const choice = { paths, ...(index % 3 === 0 ? { after: () => new PatternConstraint(steps) } : {}) };
  const maxTokens = index === 5 ? 150 : 8;
  const common = { constraint: null, sampling: GREEDY, maxTokens, endTokens: new Set<number>() };
  const suffix = tokens(
    new Map([
      [7, 43],
      [8, 44],
      [9, 100],
    ]).get(index) ?? 2 + (index % 7),
  );
  return { suffix, ...common, ...(index % 2 === 0 ? { choice } : {}) };
}

/** Returns the folder of a random model in a GGUF file. */
function ggufFolder(blocks: 'q4_0' | 'q4_1'): string {
  const folder = mkdtempSync(join(tmpdir(), 'assay-gguf-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeGgufFixture(folder, blocks);
  return folder;
}

/** Returns the folder of a random model with one key head, whose heads have so many elements. */
function oneKeyHead(headSize: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'assay-one-key-head-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const size = { layers: 2, hidden: 2 * headSize, heads: 2, kvHeads: 1, headSize, intermediate: 64, vocabulary: 512 };
  writeCheckpoint(folder, { ...size, context: 2048, ropeTheta: 1e4 }, new Noise(1));
  return folder;
}

/** Returns the folder of a model to compile. */
function sourceOf(fixture: string): string {
  if (fixture === 'q4_0' || fixture === 'q4_1') return ggufFolder(fixture);
  if (fixture === 'large heads') return oneKeyHead(256);
  return fixture.includes('/') ? fixture : familyFolder(fixture);
}

/** Returns the folder of a random model of a family, with positions for all of a run's tokens. */
function familyFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'assay-family-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFamily(folder, name, 2048);
  return folder;
}

test.skipIf(!KERNEL_BLOCKS.has(kernelFamily())).each([
  ['genai/llama', 'float'],
  ['genai/llama', 'int8'],
  ['genai/llama', 'int8-blocks'],
  // Blocks of 4 bits, as they are written here and as they were published.
  ['genai/llama', 'int4'],
  ['genai/llama-int4', 'int4'],
  // Blocks of 4 bits of a GGUF file, without a minimum and with one.
  ['q4_0', 'published'],
  ['q4_1', 'published'],
  // Layers with a window, shorter than the prefix and than the long branches, beside layers without.
  ['genai/gemma3', 'int8'],
  // Three query heads share a key head, or one each; floats show the last bits.
  ['../families/safetensors/smollm2', 'float'],
  ['../families/safetensors/qwen2-windows', 'float'],
  // Heads whose elements onnxruntime adds in an order that depends on the number of cells.
  ['large heads', 'float'],
  // Heads that differ from layer to layer; with layers that share keys and values, also in a published graph.
  ['../families/safetensors/gemma4', 'float'],
  ['../families/safetensors/gemma4', 'int8'],
  ['../families/safetensors/gemma4', 'int4'],
  ['../families/safetensors/gemma4-e2b', 'float'],
  ['../families/safetensors/gemma4-e2b', 'int8'],
  ['../families/safetensors/gemma4-e2b', 'int4'],
  ['../families/mobius/gemma4', 'int8'],
  // Capped scores.
  ['../families/safetensors/gemma2', 'float'],
  ['../families/safetensors/gemma2', 'int8'],
  ['../families/safetensors/gemma2', 'int4'],
  // Layers with a state.
  ['qwen3.5', 'float'],
  ['qwen3.5', 'int8'],
  ['qwen3.5', 'int4'],
  ['lfm2', 'float'],
  ['lfm2', 'int8'],
  // Such layers beside large heads, as real models of Qwen 3.5 have; and those of Gemma.
  ['qwen3.5-text:256', 'float'],
  ['gemma3:256', 'float'],
] as const)('%s in %s: an answer is the same in every bit alone and in company', async (fixture, form) => {
  const model: EngineModel = await compileFixture(sourceOf(fixture), form);
  expect(model.independent).toBe(true);
  const engine = () => engineFor(model, { limits: LIMITS });
  const [prefix, other] = [tokens(70), tokens(45)];
  const questions = Array.from({ length: 12 }, (_, index) => question(index));
  const alone: string[] = [];
  for (const one of questions) alone.push(...(await answer(engine(), prefix, [one])));
  expect(await answer(engine(), prefix, questions)).toEqual(alone);
  expect((await answer(engine(), prefix, questions.toReversed())).toReversed()).toEqual(alone);
  const shared = engine();
  const beside = Array.from({ length: 3 }, (_, chat) =>
    answer(shared, tokens(30 + chat), [{ ...question(1), maxTokens: 40 }], { apart: false }),
  );
  const busy = await Promise.all([answer(shared, prefix, questions), answer(shared, other, questions), ...beside]);
  expect(busy[0]).toEqual(alone);
  expect(await answer(shared, prefix, questions)).toEqual(alone);
  shared.checkIntegrity();
  await model.close();
});

test.skipIf(!KERNEL_BLOCKS.has(kernelFamily())).each([
  ['genai/llama', 'float'],
  ['genai/llama', 'int8'],
  ['genai/llama', 'int4'],
  ['qwen3.5', 'float'],
  ['qwen3.5', 'int8'],
  ['lfm2', 'int4'],
] as const)('%s in %s: a question about a chat is answered in every bit as without the chat', async (fixture, form) => {
  const model = await compileFixture(sourceOf(fixture), form);
  const [prompt, spoken, asked] = [tokens(45), question(1), question(0)];
  const shared = engineFor(model);
  const chat = await answer(shared, prompt, [{ ...spoken, maxTokens: 80 }], { apart: false });
  const written: number[] = JSON.parse(at(chat, 0))[1];
  const said = [...prompt, ...spoken.suffix, ...written];
  const alone = await answer(engineFor(model), said, [asked]);
  expect(await answer(shared, said, [asked])).toEqual(alone);
  // The chat goes on from what it wrote, also from the cells that the question read again.
  await answer(shared, said, [spoken], { apart: false });
  expect(await answer(shared, said, [asked])).toEqual(alone);
  expect(shared.kvCells.cached).toBeGreaterThan(said.length);
  shared.checkIntegrity();
  await model.close();
});

test('a low bound of scores changes both parts of attention as it does side by side', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'assay-capped-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(modelFixture('../families/safetensors/gemma2'), folder, { recursive: true });
  const config = readFileSync(join(folder, 'config.json'), 'utf8');
  writeFileSync(join(folder, 'config.json'), config.replace('softcapping": 50.0', 'softcapping": 0.2'));
  const model = await compileFixture(folder, 'float');
  const [prefix, asked] = [tokens(70), question(4)];
  const logprobs = async (apart: boolean): Promise<number[]> =>
    JSON.parse(at(await answer(engineFor(model), prefix, [asked], { apart }), 0))[0];
  const together = await logprobs(false);
  for (const [index, each] of (await logprobs(true)).entries()) expect(each).toBeCloseTo(at(together, index), 3);
  await model.close();
});

test.skipIf(!KERNEL_BLOCKS.has(kernelFamily())).each([
  [64, 4],
  [40, 3],
  [256, 4],
])(
  'heads of %i elements, %i threads: more than key heads add values of a long text in one order',
  async (size, threads) => {
    const model = await compileFixture(oneKeyHead(size), 'float', undefined, { maxPromptLen: 2048, threads });
    expect(model.independent).toBe(true);
    const engine = () => engineFor(model, { kvBytes: 256 << 20 });
    const prefix = tokens(1500);
    const questions = Array.from({ length: 7 }, (_, index) => question(index));
    const alone: string[] = [];
    for (const one of questions) alone.push(...(await answer(engine(), prefix, [one])));
    expect(await answer(engine(), prefix, questions)).toEqual(alone);
    await model.close();
  },
);

test('a long suffix is read once, like the prefix, and each long option after it', async () => {
  const model = await compileFixture('genai/llama', 'float');
  const runs: string[] = [];
  const forward: EngineModel['forward'] = {
    ...{ vocabSize: model.forward.vocabSize, slots: model.forward.slots, apart: true },
    run(batch) {
      for (const { sequence, start, rows } of batch)
        runs.push(`${sequence.length - start} after ${start}: ${rows.length}${sequence.branches ? ', apart' : ''}`);
      return model.forward.run(batch);
    },
  };
  const engine = engineFor({ manifest: model.manifest, forward }, { limits: { longSuffix: 150 } });
  const prefix = tokens(70);
  const paths = [128, 150, 253, 3].map((length) => [...tokens(length), 9]);
  const questions = [{ ...question(2), suffix: tokens(150), choice: { paths } }, question(4)];
  const logprobs = (answers: string[]) => answers.map((each) => JSON.parse(each)[0] as number[]);
  const found = logprobs(await answer(engine, prefix, questions));
  // Each token of the options has a row, and the last token of the suffix one for all of them. A run of 129 tokens
  // would leave one over (`rowsMissing`).
  expect(runs).toEqual([
    '219 after 0: 0',
    '126 after 219: 126',
    '3 after 345: 3',
    '151 after 219: 150',
    '254 after 219: 253',
    '4 after 219: 3, apart',
    expect.stringMatching(/after 70: 181, apart$/),
  ]);
  expect(engine.kvCells.cached).toBe(70);
  engine.checkIntegrity();
  const together = logprobs(await answer(engineFor(model), prefix, questions, { apart: false }));
  for (const [index, each] of found.flat().entries()) expect(each).toBeCloseTo(at(together.flat(), index), 2);
  await model.close();
});

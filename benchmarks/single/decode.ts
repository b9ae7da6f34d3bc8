import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { at } from '../../lib/at.ts';
import { readManifest } from '../../runtime/compile/manifest.ts';
import { argmax } from '../../runtime/engine/branches/sampler.ts';
import { sessionOptions } from '../../runtime/engine/model.ts';
import { isEndOfResults } from '../../runtime/onnx/rewrites/end-results.ts';
import { randomTokens } from '../branches/tokens.ts';
import { answer, chat, engineOf, openForBenchmark } from '../branches/workload.ts';
import { compiledRandomModel } from '../models/cache.ts';
import { median, type Report } from '../report.ts';
import { type Cost, measure } from '../systems/measure.ts';
import { THREADS } from '../systems/start.ts';

/**
 * Measures the time that the engine adds to a decode step. The engine and onnxruntime alone run the same graph with the
 * same number of cells, in turn. onnxruntime runs twice, with and without onnxruntime-node's copy of all results.
 * Arguments: `--form=int8|int4 --prompt=512 --tokens=64 --rounds=5`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      form: { type: 'string', default: 'int8' },
      prompt: { type: 'string', default: '512' },
      tokens: { type: 'string', default: '64' },
      rounds: { type: 'string', default: '5' },
    },
  });
  const form = values.form === 'int4' ? 'int4' : 'int8';
  const prompt = Number(values.prompt);
  const tokens = Number(values.tokens);
  const rounds = Number(values.rounds);
  const folder = await compiledRandomModel('qwen2.5-0.5b', form, 1);
  const model = await openForBenchmark(folder);
  const bare = await bareDecoder(folder, prompt + tokens, false);
  const copying = await bareDecoder(folder, prompt + tokens, true);
  const engineCosts: Cost[] = [];
  const bareCosts: Cost[] = [];
  const copyingCosts: Cost[] = [];
  for (let round = 0; round <= rounds; round++) {
    const engine = engineOf(model);
    const work = chat(prompt, tokens, round);
    // First puts the prompt into the prefix cache. Then only decode steps are measured.
    await answer(engine, { ...work, branches: [{ ...at(work.branches, 0), maxTokens: 1 }] });
    const byEngine = await answer(engine, work);
    const alone = await measure(() => bare(prompt, tokens));
    const aloneCopying = await measure(() => copying(prompt, tokens));
    if (round === 0) continue; // warm up
    engineCosts.push(byEngine);
    bareCosts.push(alone);
    copyingCosts.push(aloneCopying);
  }
  const what = `a token at ${prompt}`;
  for (const [system, costs] of [
    [`assay ${form}`, engineCosts] as const,
    [`onnxruntime ${form}`, bareCosts] as const,
    [`onnxruntime ${form}, results copied`, copyingCosts] as const,
  ]) {
    const say = (metric: string, of: (cost: Cost) => number) =>
      report({ system, case: what, metric, value: median(costs.map(of)) / tokens, unit: 'ms' });
    say('time', ({ ms }) => ms);
    say('processor time', ({ cpuMs }) => cpuMs);
  }
  const compare = (metric: string, others: readonly Cost[], of: (cost: Cost) => number) => {
    const ratios = engineCosts.map((cost, round) => of(at(others, round)) / of(cost));
    report({ system: `assay ${form}`, case: what, metric, value: median(ratios), unit: 'of onnxruntime' });
  };
  compare('speed', bareCosts, ({ ms }) => ms);
  compare('speed (processor)', bareCosts, ({ cpuMs }) => cpuMs);
  compare('speed, results copied', copyingCosts, ({ ms }) => ms);
  await model.close();
}

/**
 * Returns a function that decodes `count` tokens after `from` cells of KV in the simplest possible loop: it updates KV
 * buffers in place, creates its tensors once and chooses greedily. With `copies`, onnxruntime-node copies all results
 * of a run.
 */
async function bareDecoder(
  modelFolder: string,
  capacity: number,
  copies: boolean,
): Promise<(from: number, count: number) => Promise<void>> {
  const manifest = readManifest(modelFolder);
  const session = await InferenceSession.create(join(modelFolder, manifest.graph), await sessionOptions(THREADS));
  const feeds: Record<string, Tensor> = {};
  const fetches: Record<string, Tensor | null> = {};
  for (const { past, present, heads, headSize } of manifest.kv) {
    for (const part of [0, 1]) {
      const data = new Float32Array(heads * capacity * headSize).fill(0.01);
      const tensor = new Tensor('float32', data, [1, heads, capacity, headSize]);
      feeds[at(past, part)] = tensor;
      fetches[at(present, part)] = tensor;
    }
  }
  if (!copies) fetches[manifest.end!] = null;
  const logits = new Float32Array(manifest.vocabSize);
  fetches[manifest.logits] = new Tensor('float32', logits, [1, 1, manifest.vocabSize]);
  const { inputs } = manifest;
  return async (from, count) => {
    let token = at(randomTokens(1, from), 0);
    for (let at = from; at < from + count; at++) {
      feeds[inputs.tokens] = new Tensor('int64', BigInt64Array.of(BigInt(token)), [1, 1]);
      feeds[inputs.positions!] = new Tensor('int64', BigInt64Array.of(BigInt(at)), [1, 1]);
      feeds[inputs.attentionMask!] = new Tensor('int64', new BigInt64Array(at + 1).fill(1n), [1, at + 1]);
      feeds[inputs.rows!] = new Tensor('int64', BigInt64Array.of(0n), [1]);
      for (const { name } of inputs.masks)
        feeds[name] = new Tensor('float32', new Float32Array(at + 1), [1, 1, 1, at + 1]);
      await session.run(feeds, fetches).catch((error: unknown) => {
        if (!isEndOfResults(error)) throw error;
      });
      token = argmax(logits, null);
    }
  };
}

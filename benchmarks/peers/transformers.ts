import { basename, dirname } from 'node:path';
import { AutoModelForCausalLM, env, Tensor } from '@huggingface/transformers';
import { at } from '../../lib/at.ts';
import { randomTokens, W } from '../branches/tokens.ts';
import { transformersRandomModel } from '../models/cache.ts';
import { type Cost, measure } from '../systems/measure.ts';
import type { OpenSystem } from '../systems/system.ts';

/**
 * Opens transformers.js on onnxruntime-node, with one request for each task, as its users do. If the context is cached,
 * every request gets the context's `past_key_values`.
 */
export const open: OpenSystem = async ({ shape, weights, threads }) => {
  const folder = await transformersRandomModel(shape, weights);
  env.allowRemoteModels = false;
  env.localModelPath = `${dirname(folder)}/`;
  const model = await AutoModelForCausalLM.from_pretrained(basename(folder), {
    dtype: 'fp32', // selects the file; its weights have the number format of `transformersRandomModel`
    device: 'cpu',
    local_files_only: true,
    session_options: { intraOpNumThreads: threads },
  });
  const generate = async (tokens: number[], count: number, more: object = {}): Promise<unknown> =>
    model.generate({
      inputs: integers(tokens),
      attention_mask: integers(tokens.map(() => 1)),
      max_new_tokens: count,
      min_new_tokens: count,
      do_sample: false,
      ...more,
    } as never);
  return {
    async branches({ tasks, seed }) {
      const context = randomTokens(W.context, seed);
      const task = (from: number, i: number) => [...context, ...randomTokens(W.task, from * 1000 + i)];
      const cold = await measured(async () => {
        for (let i = 0; i < tasks; i++) await generate(task(seed, i), W.answer);
      });
      const kept = (await generate(context, 1, { return_dict_in_generate: true })) as { past_key_values: object };
      const cached = await measured(async () => {
        for (let i = 0; i < tasks; i++) {
          await generate(task(seed + 1, i), W.answer, { past_key_values: kept.past_key_values });
        }
      });
      return { cold, cached };
    },
    prefill: ({ tokens, seed }) => measured(() => generate(randomTokens(tokens, seed), 1)),
    async decode({ context, tokens, seed }) {
      const times: number[] = [];
      const cpu: number[] = [];
      const streamer = {
        put() {
          const { user, system } = process.cpuUsage();
          times.push(performance.now());
          cpu.push((user + system) / 1000);
        },
        end() {},
      };
      // Counts from the second call of the streamer: the first two deliver the prompt and the first generated token,
      // which belong to the prefill.
      await generate(randomTokens(context, seed), tokens + 1, { streamer });
      return { ms: times.at(-1)! - at(times, 1), cpuMs: cpu.at(-1)! - at(cpu, 1) };
    },
  };
};

function integers(values: number[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
}

async function measured(work: () => Promise<unknown>): Promise<Cost> {
  const { ms, cpuMs } = await measure(work);
  return { ms, cpuMs };
}

import { at } from '../../lib/at.ts';
import { openModel } from '../../runtime/engine/model.ts';
import { W } from '../branches/tokens.ts';
import { answer, chat, choices, engineOf, workload } from '../branches/workload.ts';
import { gapsOf } from '../crowd/gaps.ts';
import { compiledRandomModel } from '../models/cache.ts';
import { measure } from './measure.ts';
import type { OpenSystem } from './system.ts';

/** Opens Assay's engine without the server around it: tokens in, tokens out. */
export const open: OpenSystem = async ({ shape, weights, threads, slots }) => {
  const model = await openModel(await compiledRandomModel(shape, weights, slots), { threads });
  return {
    async branches({ tasks, seed }) {
      const engine = engineOf(model);
      const first = workload(tasks, seed);
      const cold = await answer(engine, first);
      const cached = await answer(engine, { ...first, branches: workload(tasks, seed + 1).branches });
      if (cached.result.cachedTokens !== W.context) throw new Error('the context was not kept');
      return { cold: costOf(cold), cached: costOf(cached) };
    },
    async choices(work) {
      const done = await answer(engineOf(model), choices(work));
      return { ...costOf(done), promptTokens: done.result.promptTokens };
    },
    async prefill({ tokens, seed }) {
      return costOf(await answer(engineOf(model), chat(tokens, 1, seed)));
    },
    async decode({ context, tokens, seed }) {
      const engine = engineOf(model);
      const work = chat(context, tokens, seed);
      await answer(engine, { ...work, branches: [{ ...at(work.branches, 0), maxTokens: 1 }] });
      return costOf(await answer(engine, work));
    },
    async crowd({ requests }) {
      const engine = engineOf(model);
      const cost = await measure(async () => {
        const all = requests.map(({ prompt, answer, seed }) => engine.submit(chat(prompt, answer, seed)));
        while (await engine.step());
        await Promise.all(all);
      });
      return costOf(cost);
    },
    async gaps(work) {
      return {
        alone: await gapsOf(engineOf(model), work, false),
        beside: await gapsOf(engineOf(model), work, true),
      };
    },
  };
};

/** Returns the cost without the result, which the parent process does not need. */
function costOf({ ms, cpuMs }: { ms: number; cpuMs: number }) {
  return { ms, cpuMs };
}

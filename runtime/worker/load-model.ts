import { setImmediate } from 'node:timers/promises';
import type { Metrics } from '../../lib/backend.ts';
import { prepareVocabulary } from '../../lib/decision/task-grammar.ts';
import { AssayError } from '../../lib/errors.ts';
import { availableMemory } from '../device/available-memory.ts';
import { providersOf } from '../device/device-table.ts';
import { Engine } from '../engine/engine.ts';
import type { JobResult } from '../engine/job.ts';
import { kvShape, type Model, openModel, readManifest } from '../engine/model.ts';
import { cellBytes } from '../engine/sequence.ts';
import type { LoadSpec, Work } from '../protocol/messages.ts';
import { COUNTED_LIMITS } from '../text/prompt.ts';
import { loadTextModel } from '../text/text-model.ts';
import { planChat } from './chat-job.ts';
import type { PreparedWork, ServedModel, WorkChannel } from './serve.ts';
import { type JobPlan, planTasks } from './task-job.ts';

/** Prompts of full length whose keys and values are kept, where nobody says how many bytes. */
const KEPT_PROMPTS = 4;

/** Loads a compiled model and the text side of it. Runs in the engine process. */
export async function loadModel({ model, dir, threads, prefixCacheBytes }: LoadSpec): Promise<ServedModel> {
  const { manifest, forward } = await openOn(dir, threads);
  const { maxPromptLen, contextLength, device } = manifest;
  const text = await loadTextModel(dir, { mostTokens: COUNTED_LIMITS * maxPromptLen, vocabSize: manifest.vocabSize });
  prepareVocabulary(text.vocabulary);
  const kv = kvShape(manifest);
  const kvBytes = prefixCacheBytes ?? Math.min(KEPT_PROMPTS * maxPromptLen * cellBytes(kv), availableMemory() / 4);
  const engine = new Engine({ forward, kv, maxPromptLen, contextLength, kvBytes });
  let nextJob = 0;
  let stepping = false;

  /** Steps while there is work, and lets messages in between steps. A step that throws ends the process: a new one starts clean. */
  async function work(): Promise<void> {
    if (stepping) return;
    stepping = true;
    while (await engine.step()) await setImmediate();
    stepping = false;
  }

  /** Runs a job and measures it. `heard` is called at its first token. */
  async function run(plan: JobPlan, { reply, signal }: WorkChannel, timeoutMs: number): Promise<Measured> {
    const began = performance.now();
    let firstTokenMs: number | null = null;
    const job = {
      ...plan,
      id: String(nextJob++),
      deadline: began + timeoutMs,
      onToken: (...[branch, token]: Parameters<NonNullable<JobPlan['onToken']>>) => {
        firstTokenMs ??= performance.now() - began;
        return plan.onToken?.(branch, token);
      },
    };
    const submitted = engine.submit(job, signal);
    void work();
    // Refused at once where it cannot be run.
    await Promise.race([submitted, null]);
    reply({ type: 'queued' });
    const result = await submitted;
    return { result, firstTokenMs, totalMs: performance.now() - began };
  }

  function prepare(asked: Work): PreparedWork {
    if (asked.kind === 'tasks') {
      const { promptTokens, plan, answers } = planTasks(text, asked.batch, maxPromptLen);
      return {
        promptTokens,
        async run(channel, timeoutMs) {
          const measured = await run(plan, channel, timeoutMs);
          const { branches } = measured.result;
          channel.reply({ type: 'answers', answers: answers(measured.result) });
          const reason = branches.some((branch) => branch.reason === 'length') ? 'length' : 'stop';
          channel.reply({ type: 'finished', reason, ...figures(promptTokens, measured, device) });
        },
      };
    }
    const chat = planChat(text, asked.request, manifest);
    return {
      promptTokens: chat.promptTokens,
      async run(channel, timeoutMs) {
        const say: Parameters<typeof chat.plan>[0] = ({ reasoning, content, logprobs }) => {
          if (reasoning !== '') channel.reply({ type: 'reasoning', text: reasoning });
          if (content !== '' || logprobs.length > 0) {
            channel.reply({ type: 'content', text: content, ...(logprobs.length > 0 ? { logprobs } : {}) });
          }
        };
        const measured = await run(chat.plan(say), channel, timeoutMs);
        const { delta, reason } = chat.end(measured.result);
        say(delta);
        channel.reply({ type: 'finished', reason, ...figures(chat.promptTokens, measured, device) });
      },
    };
  }

  return {
    info: { model, device, maxPromptLen, contextLength },
    prepare,
    load: () => ({ running: engine.running, waiting: engine.queued }),
  };
}

/** Opens the model with the first execution provider of its device that takes it. */
async function openOn(dir: string, threads: number | undefined): Promise<Model> {
  let failure: unknown;
  for (const provider of providersOf(readManifest(dir).device)) {
    try {
      return await openModel(dir, { providers: [provider], ...(threads ? { threads } : {}) });
    } catch (error) {
      failure = error;
    }
  }
  throw (
    failure ?? new AssayError('engine_failed', 'The model was compiled for a device that this machine does not have.')
  );
}

interface Measured {
  result: JobResult;
  /** From `run` to the first chosen token; null where none was chosen. */
  firstTokenMs: number | null;
  totalMs: number;
}

function figures(promptTokens: number, { result, firstTokenMs, totalMs }: Measured, device: Metrics['device']) {
  const completionTokens = result.branches.reduce((sum, { chosen }) => sum + chosen, 0);
  const { queueMs, promptMs, generationMs, cachedTokens } = result;
  const firstMs = firstTokenMs ?? (completionTokens > 0 ? queueMs + promptMs : null);
  const perSecond = (tokens: number, ms: number) => (tokens > 0 && ms > 0 ? rounded((tokens / ms) * 1000) : null);
  const metrics: Metrics = {
    queue_ms: rounded(queueMs),
    prompt_ms: rounded(promptMs),
    time_to_first_token_ms: firstMs === null ? null : rounded(firstMs),
    generation_ms: rounded(generationMs),
    total_ms: rounded(totalMs),
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
    completion_tokens: completionTokens,
    prompt_tokens_per_second: perSecond(promptTokens - cachedTokens, promptMs),
    // The first token comes with the end of the prompt; the time is that of those after it.
    tokens_per_second: perSecond(completionTokens - 1, generationMs),
    device,
  };
  return { usage: { promptTokens, completionTokens }, metrics };
}

/** Three decimals: microseconds of a time in milliseconds. */
function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

import { rmSync } from 'node:fs';
import { pino } from 'pino';
import { at } from '../../lib/at.ts';
import type { ChatRequest } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { createEngineBackend } from '../../runtime/supervisor/engine-backend.ts';
import { createEngineMetrics } from '../../runtime/supervisor/metrics.ts';
import { Supervisor } from '../../runtime/supervisor/supervisor.ts';
import { answer, chat, engineOf, openForBenchmark } from '../branches/workload.ts';
import { compiledRandomModel } from '../models/cache.ts';
import { withTokenizer } from '../models/random-tokenizer.ts';
import { median, type Report } from '../report.ts';

const PROMPT = 512;
const TOKENS = 48;
const ROUNDS = 5;
const MODEL = 'benchmark/random' as ModelId;

/**
 * Measures the time that the engine process adds to a chat. The same model decodes, in turn, in this process with the
 * engine alone, and in the engine process, with messages, detokenizer and backend. It has 8-bit weights in the shape of
 * Qwen2.5-0.5B.
 */
export async function run(report: Report): Promise<void> {
  const folder = await compiledRandomModel('qwen2.5-0.5b', 'int8');
  const inside = await openForBenchmark(folder);
  const dir = withTokenizer(folder, inside.manifest.vocabSize);
  const log = pino({ level: 'silent' });
  const engine = new Supervisor({ log });
  const metrics = createEngineMetrics(() => [engine.status()]);
  const models = {
    listModels: async () => [],
    loadedModels: () => [{ model: MODEL, info: engine.status().info, engine, used: () => undefined }],
  };
  const backend = createEngineBackend({
    models,
    metrics,
    log,
    timeoutMs: 600_000,
    chatMaxTokens: 1024,
    logPrompts: false,
  });
  try {
    const threads = Number(process.env.ASSAY_BENCHMARK_THREADS ?? 2);
    const { loadMs } = await engine.load({ model: MODEL, dir, threads });
    report({ system: 'assay', case: 'load', metric: 'time', value: loadMs, unit: 'ms' });
    const alone: number[] = [];
    const through: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const inner = await answer(engineOf(inside), chat(PROMPT, TOKENS, round));
      const outer = await decodeMs(round);
      if (round === 0) continue; // warm up
      alone.push(inner.result.generationMs / (TOKENS - 1));
      through.push(outer);
    }
    const of = (system: string, value: number) =>
      report({ system, case: 'decode', metric: 'time per token', value, unit: 'ms' });
    of('engine alone', median(alone));
    of('engine process', median(through));
    const share = median(alone.map((ms, round) => ms / at(through, round)));
    report({ system: 'engine process', case: 'decode', metric: 'share of alone', value: share, unit: '' });
  } finally {
    await engine.close();
    await inside.close();
    rmSync(dir, { recursive: true });
  }

  /** Returns the mean time between two tokens, as the caller of the backend sees it, in milliseconds. */
  async function decodeMs(round: number): Promise<number> {
    const request: ChatRequest = {
      messages: [{ role: 'user', parts: [{ type: 'text', text: `${round}${'x'.repeat(PROMPT - 24)}` }] }],
      maxTokens: TOKENS,
      temperature: 0,
      stop: [],
      presencePenalty: 0,
      frequencyPenalty: 0,
      format: { type: 'text' },
    };
    const call = { requestId: 'bench', signal: new AbortController().signal, admit: async () => {} };
    let first = 0;
    for await (const event of backend.chat(request, call)) {
      if (event.type === 'content') first ||= performance.now();
      if (event.type === 'finish' && event.usage.completionTokens !== TOKENS) throw new Error('the answer ended early');
    }
    return (performance.now() - first) / (TOKENS - 1);
  }
}

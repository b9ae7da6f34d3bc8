import { Writable } from 'node:stream';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import type { Call, TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { sizeOfRequest } from '../../lib/limits/request-size.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { AdmissionLimits } from '../../runtime/supervisor/calls/admission-queue.ts';
import { createEngineBackend } from '../../runtime/supervisor/engine-backend.ts';
import { createEngineMetrics } from '../../runtime/supervisor/metrics.ts';
import { Supervisor } from '../../runtime/supervisor/supervisor.ts';
import { loadedIn } from './machine.ts';

const MODEL = 'test/scripted' as ModelId;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start({
  load = true,
  logPrompts = false,
  ...more
}: {
  load?: boolean;
  logPrompts?: boolean;
  admission?: Partial<AdmissionLimits>;
} = {}) {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const log = pino({ level: 'trace' }, sink);
  const entry = new URL('./scripted-child.ts', import.meta.url);
  const engine = new Supervisor({ log, entry, watchMs: 50, ...more, onRestart: () => metrics.restarted(MODEL) });
  const metrics = createEngineMetrics(() => [engine.status()]);
  closing.push(() => engine.close());
  if (load) await engine.load({ model: MODEL, dir: '/fine' });
  const models = {
    loadedModels: () => loadedIn(engine),
    listModels: async () => [
      { id: MODEL, status: engine.status().state === 'loading' ? ('loading' as const) : ('compiled' as const) },
      { id: 'test/asleep' as ModelId, status: 'compiled' as const },
    ],
  };
  const backend = createEngineBackend({
    models,
    metrics,
    log,
    timeoutMs: 60_000,
    chatMaxTokens: 1024,
    logPrompts,
  });
  return { backend, engine, metrics, lines };
}

function call(admit = async () => {}): Call & { admitted: number } {
  const made = {
    requestId: 'req-1',
    signal: new AbortController().signal,
    admitted: 0,
    admit: async () => {
      made.admitted++;
      await admit();
    },
  };
  return made;
}

const batch = (question: string, model: string = MODEL): TaskBatch => ({
  model,
  input: { context: 'a private text' },
  media: [],
  tasks: [{ type: 'decide', name: 'a', question }],
  temperature: 0,
  maxOutputTokens: 16,
});

describe('runTasks', () => {
  it('answers, and takes the quota once', async () => {
    const { backend } = await start();
    const made = call();
    expect(await backend.runTasks(batch('x'), made)).toEqual({
      model: MODEL,
      answers: [{ name: 'a', json: '{"value":"x"}' }],
      finishReason: 'stop',
      usage: { promptTokens: 3, completionTokens: 1 },
    });
    expect(made.admitted).toBe(1);
  });

  it.each([
    ['an unknown model', batch('x', 'test/unknown'), 'model_not_found', 0],
    ['a name that is no id', batch('x', '../../etc'), 'model_not_found', 0],
    ['a model that is not loaded', batch('x', 'test/asleep'), 'model_not_loaded', 0],
    ['a prompt that is too long', batch('too long'), 'input_too_long', 1],
  ])('refuses %s', async (_, asked, code, admitted) => {
    const { backend } = await start();
    const made = call();
    await expect(backend.runTasks(asked, made)).rejects.toMatchObject({ code });
    expect(made.admitted).toBe(admitted);
  });

  it('refuses where the queue is full, after the quota', async () => {
    const { backend, engine, metrics } = await start({ admission: { requests: 1, characters: 1_000 } });
    const leave = new AbortController();
    const first = call();
    const holding = backend.runTasks(batch('wait 60000'), { ...first, signal: leave.signal });
    holding.catch(() => {});
    const made = call();
    await expect(backend.runTasks(batch('x'), made)).rejects.toMatchObject({
      code: 'overloaded',
      retryAfterSeconds: 1,
    });
    expect(made.admitted).toBe(1);
    const noQuota = call(async () => {
      throw new AssayError('rate_limited', 'Wait.', { retryAfterSeconds: 3 });
    });
    await expect(backend.runTasks(batch('x'), noQuota)).rejects.toMatchObject({ code: 'rate_limited' });
    await expect.poll(() => first.admitted).toBe(1);
    const tokens = async () => /^assay_tokens_admitted\{.*\} (\d+)$/m.exec(await metrics.registry.metrics())?.[1];
    expect(Number(await tokens())).toBe(sizeOfRequest(batch('wait 60000')).tokens);
    leave.abort();
    await expect.poll(() => engine.status().admitted).toBe(0);
    expect(await tokens()).toBe('0');
    await expect(backend.runTasks(batch('x'), call())).resolves.toMatchObject({ finishReason: 'stop' });
    expect(await metrics.registry.metrics()).toContain('outcome="overloaded",model="test/scripted"} 1');
  });

  it('refuses where the quota does, and the engine forgets the request', async () => {
    const { backend, engine } = await start();
    const refused = call(async () => {
      throw new AssayError('rate_limited', 'Wait.', { retryAfterSeconds: 3 });
    });
    await expect(backend.runTasks(batch('x'), refused)).rejects.toMatchObject({
      code: 'rate_limited',
      retryAfterSeconds: 3,
    });
    await engine.unload();
  });

  it('says model_not_loaded without a model', async () => {
    const { backend } = await start({ load: false });
    await expect(backend.runTasks(batch('x'), call())).rejects.toMatchObject({ code: 'model_not_loaded' });
    const chat = backend.chat(
      { messages: [], stop: [], presencePenalty: 0, frequencyPenalty: 0, format: { type: 'text' } },
      call(),
    );
    await expect(chat[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'model_not_loaded' });
  });

  it('says that a model is being loaded to a chat that names none', async () => {
    const { backend, engine } = await start({ load: false });
    const loading = engine.load({ model: MODEL, dir: '/slow' });
    await expect.poll(() => engine.status().state, { interval: 5 }).toBe('loading');
    const chat = backend.chat(
      { messages: [], stop: [], presencePenalty: 0, frequencyPenalty: 0, format: { type: 'text' } },
      call(),
    );
    await expect(chat[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'model_not_loaded',
      message: 'The model test/scripted is not ready yet (loading). Try again in a moment.',
    });
    await loading;
  });
});

describe('what operators see', () => {
  it('has the names of vLLM too, if they are asked for', async () => {
    const { engine } = await start();
    const now = { ...engine.status(), waiting: 2, running: 1, kvCells: { running: 3, cached: 1, most: 12 } };
    const text = await createEngineMetrics(() => [now], undefined, 'vllm').registry.metrics();
    for (const line of [
      `vllm:num_requests_waiting{model_name="${MODEL}"} 2`,
      `vllm:num_requests_running{model_name="${MODEL}"} 1`,
      `vllm:kv_cache_usage_perc{model_name="${MODEL}"} 0.25`,
    ])
      expect(text).toContain(`${line}\n`);
    expect(text).toContain(`\nvllm:cache_config_info{block_size="1",num_gpu_blocks="12",model_name="${MODEL}"} 1\n`);
    const loading = { ...now, state: 'loading' as const };
    expect(await createEngineMetrics(() => [loading], undefined, 'vllm').registry.metrics()).not.toMatch(/^vllm:/m);
  });

  it.each(['heap', 'buffers'])('reads the %s of the engine process from its heartbeat', async (part) => {
    const { backend, metrics } = await start();
    await backend.runTasks(batch('x'), call());
    const text = () => metrics.registry.metrics();
    await expect
      .poll(text)
      .toMatch(new RegExp(`^assay_engine_memory_bytes\\{part="${part}",model="${MODEL}"\\} [1-9]\\d+$`, 'mu'));
  });

  it('counts in /metrics', async () => {
    const { backend, metrics } = await start();
    await backend.runTasks(batch('x'), call());
    await backend.runTasks(batch('crash'), call()).catch(() => {});
    await backend.runTasks(batch('y'), call());
    await backend.runTasks(batch('z'), { ...call(), signal: AbortSignal.abort() }).catch(() => {});
    const text = await metrics.registry.metrics();
    for (const line of [
      'assay_requests_total{kind="tasks",outcome="ok",model="test/scripted"} 2',
      'assay_requests_total{kind="tasks",outcome="engine_failed",model="test/scripted"} 1',
      'assay_requests_total{kind="tasks",outcome="caller_left",model="test/scripted"} 1',
      'assay_prompt_tokens_total{kind="tasks",model="test/scripted"} 6',
      'assay_completion_tokens_total{kind="tasks",model="test/scripted"} 2',
      'assay_engine_restarts_total{model="test/scripted"} 1',
      'assay_engine_ready{model="test/scripted"} 1',
      'assay_prefix_cache_lookups_total{result="miss",model="test/scripted"} 2',
      'assay_request_seconds_count{kind="tasks",model="test/scripted"} 2',
      'assay_requests_admitted{model="test/scripted"} 0',
      'assay_kv_cells{state="running",model="test/scripted"} 0',
      'assay_kv_cells{state="cached",model="test/scripted"} 0',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    // The new process says it in its first heartbeat, which may come after its first answer.
    await expect
      .poll(() => metrics.registry.metrics())
      .toMatch(/^assay_engine_resident_bytes\{model="test\/scripted"\} [1-9]\d+$/mu);
  });

  it('logs the request id and figures, never what was asked, unless told to', async () => {
    for (const logPrompts of [false, true]) {
      const { backend, lines } = await start({ logPrompts });
      await backend.runTasks(batch('a secret question'), call());
      await backend.runTasks(batch('crash'), call()).catch(() => {});
      const text = lines.join('');
      expect(text.includes('a secret question')).toBe(logPrompts);
      expect(text.includes('a private text')).toBe(logPrompts);
      const answered = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'answered');
      expect(answered).toMatchObject({ requestId: 'req-1', kind: 'tasks', model: MODEL, tasks: 1, prompt_tokens: 3 });
    }
  });
});

import { spawn } from 'node:child_process';
import events from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ModelId } from '../../lib/model-id.ts';
import { refusedPrecision } from '../../lib/models/refused-precision.ts';
import type { Reply } from '../../runtime/protocol/messages.ts';
import { Compiles } from '../../runtime/supervisor/children/compiles.ts';
import { Supervisor, type SupervisorOptions } from '../../runtime/supervisor/supervisor.ts';
import { childrenOf } from './children.ts';

type Engine = Supervisor;
const engines: Engine[] = [];
const SPEC = { model: 'test/scripted' as ModelId, dir: '/fine' };

function start(options: Partial<SupervisorOptions> = {}): Engine {
  const entry = new URL('./scripted-child.ts', import.meta.url);
  const engine = new Supervisor({ log: pino({ level: 'silent' }), entry, watchMs: 50, ...options });
  engines.push(engine);
  return engine;
}

async function ask(
  engine: Engine,
  question: string,
  signal = new AbortController().signal,
  timeoutMs = 60_000,
): Promise<string> {
  const tasks = [{ type: 'decide' as const, name: 'a', question }];
  const batch = {
    model: 'test/scripted',
    input: { context: '' },
    media: [],
    tasks,
    temperature: 0,
    maxOutputTokens: 16,
  };
  const call = await engine.call({ work: { kind: 'tasks', batch }, signal, timeoutMs });
  await call.prepare();
  let answer = '';
  for await (const reply of call.run() as AsyncIterable<Reply>)
    if (reply.type === 'answers') answer = reply.answers[0]!.json;
  return answer;
}

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

describe('load and unload', () => {
  it('loads, answers, unloads, and says so', async () => {
    const engine = start();
    expect(engine.status()).toMatchObject({ state: 'unloaded', model: null, device: null });
    await expect(ask(engine, 'x')).rejects.toMatchObject({ code: 'model_not_loaded' });
    expect(await engine.load(SPEC)).toMatchObject({ model: SPEC.model, device: 'CPU', maxPromptLen: 8 });
    expect(engine.status()).toMatchObject({ state: 'loaded', model: SPEC.model, device: 'CPU' });
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
    await engine.unload();
    expect(engine.status()).toMatchObject({ state: 'unloaded', model: null });
    await expect(ask(engine, 'x')).rejects.toMatchObject({ code: 'model_not_loaded' });
  });

  it('distinguishes a precision that gives wrong numbers from a model that does not load', async () => {
    const engine = start();
    const wrong = await engine.load({ ...SPEC, dir: '/wrong' }).catch((error: unknown) => error);
    expect(refusedPrecision(wrong)).toBe('int8');
    const broken = await engine.load({ ...SPEC, dir: '/broken' }).catch((error: unknown) => error);
    expect(broken).toMatchObject({ code: 'engine_failed' });
    expect(refusedPrecision(broken)).toBeUndefined();
  });

  it('lets requests in flight finish before it unloads, and takes no new ones', async () => {
    const engine = start();
    await engine.load(SPEC);
    const slow = ask(engine, 'wait 300');
    await delay(50);
    const unloaded = engine.unload();
    await delay(0);
    await expect(ask(engine, 'x')).rejects.toMatchObject({ code: 'model_not_loaded' });
    expect(await slow).toBe('{"value":"wait 300"}');
    await unloaded;
  });

  it('swaps models one after the other', async () => {
    const engine = start();
    const other = { model: 'test/other' as ModelId, dir: '/slow' };
    const loads = [engine.load(SPEC), engine.load(other), engine.load(SPEC)];
    expect((await Promise.all(loads)).map(({ model }) => model)).toEqual([SPEC.model, other.model, SPEC.model]);
    expect(engine.status().restarts).toBe(0);
  });

  it.each([
    ['/broken', 'The graph is damaged.'],
    [
      '/crash',
      'The engine process ended with code 1 while it loaded the model. Try again. If that fails too, load another model; the log has the details.',
    ],
  ])('gives the reason when %s does not load', async (dir, message) => {
    const engine = start();
    await expect(engine.load({ ...SPEC, dir })).rejects.toMatchObject({ code: 'engine_failed', message });
    expect(engine.status()).toMatchObject({ state: 'failed', model: SPEC.model, reason: message });
    await engine.load(SPEC);
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });
});

describe('close', () => {
  it('ends a load that waits for requests in flight, and no engine starts behind it', async () => {
    const engine = start();
    await engine.load(SPEC);
    const answer = ask(engine, 'wait 60000').catch((error: Error) => error);
    await delay(200);
    const load = engine.load(SPEC).catch((error: Error) => error);
    await expect.poll(() => engine.status().state).toBe('unloading');
    await engine.close();
    expect(await load).toMatchObject({ code: 'internal_error' });
    expect(await answer).toMatchObject({ code: 'engine_failed' });
    expect(engine.status()).toMatchObject({ state: 'unloaded', pid: null });
    await expect(engine.load(SPEC)).rejects.toMatchObject({ code: 'internal_error' });
  });
});

describe('a request', () => {
  it('that is too long is refused', async () => {
    const engine = start();
    await engine.load(SPEC);
    await expect(ask(engine, 'too long')).rejects.toMatchObject({ code: 'input_too_long' });
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });

  it('beyond the limit is refused while the engine is busy, and its place is free again afterwards', async () => {
    const engine = start({ admission: { requests: 3, characters: 10_000 } });
    await engine.load(SPEC);
    const leave = new AbortController();
    const pid = engine.status().pid!;
    process.kill(pid, 'SIGSTOP');
    const held = [ask(engine, 'x'), ask(engine, 'x'), ask(engine, 'wait 60000', leave.signal)];
    held[2]!.catch(() => {});
    const refused = await Promise.allSettled([ask(engine, 'y'), ask(engine, 'y')]);
    for (const result of refused) expect(result).toMatchObject({ reason: { code: 'overloaded' } });
    process.kill(pid, 'SIGCONT');
    await Promise.all([held[0], held[1]]);
    leave.abort();
    await expect(held[2]).rejects.toMatchObject({ code: 'internal_error' });
    // Its place is free once the engine has said that it has read the request.
    const next = () => Promise.all(['a', 'b', 'c'].map((text) => ask(engine, text)));
    expect(await vi.waitFor(next)).toHaveLength(3);
  });

  it.each(['SIGCONT', 'SIGKILL'] as const)(
    'whose caller leaves before the engine has read it keeps its place until then (%s)',
    async (then) => {
      const engine = start({ admission: { requests: 2, characters: 10_000 } });
      await engine.load(SPEC);
      const pid = engine.status().pid!;
      process.kill(pid, 'SIGSTOP');
      const leave = new AbortController();
      const held = ['x', 'wait 60000'].map((text) => ask(engine, text, leave.signal));
      setTimeout(() => leave.abort(), 50);
      for (const one of held) await expect(one).rejects.toMatchObject({ code: 'internal_error' });
      await expect(ask(engine, 'y')).rejects.toMatchObject({ code: 'overloaded' });
      process.kill(pid, then);
      await expect.poll(() => ask(engine, 'y').catch(({ code }) => code)).toBe('{"value":"y"}');
      expect(await Promise.all(['a', 'b'].map((text) => ask(engine, text)))).toHaveLength(2);
      await engine.unload();
    },
  );

  it('whose caller left before it was sent frees its place at once', async () => {
    const engine = start({ admission: { requests: 1, characters: 10_000 } });
    await engine.load(SPEC);
    process.kill(engine.status().pid!, 'SIGSTOP');
    for (let i = 0; i < 3; i++) {
      await expect(ask(engine, 'x', AbortSignal.abort())).rejects.toMatchObject({ code: 'internal_error' });
    }
  });

  it('without a caller does not delay the close', async () => {
    const engine = start({ admission: { requests: 1, characters: 10_000 } });
    await engine.load(SPEC);
    process.kill(engine.status().pid!, 'SIGSTOP');
    await expect(ask(engine, 'x', AbortSignal.timeout(50))).rejects.toMatchObject({ code: 'internal_error' });
    const load = engine.load(SPEC).catch((error: Error) => error);
    await expect.poll(() => engine.status().state).toBe('unloading');
    await engine.close();
    expect(await load).toMatchObject({ code: 'internal_error' });
  });

  it.each(['crash', 'too long'])('that ends by "%s" frees its place', async (how) => {
    const engine = start({ admission: { requests: 1, characters: 10_000 } });
    await engine.load(SPEC);
    for (let i = 0; i < 3; i++) await expect(ask(engine, how)).rejects.not.toMatchObject({ code: 'overloaded' });
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });

  it('that waits for a restart of the engine holds a place, too', async () => {
    const engine = start({ admission: { requests: 2, characters: 10_000 }, restartWaitMs: 300 });
    const spec = { ...SPEC };
    await engine.load(spec);
    spec.dir = '/broken';
    await expect(ask(engine, 'crash')).rejects.toMatchObject({ code: 'engine_failed' });
    const codes = await Promise.all(Array.from({ length: 4 }, () => ask(engine, 'x').catch(({ code }) => code)));
    expect(codes).toEqual(['engine_failed', 'engine_failed', 'overloaded', 'overloaded']);
    expect(await ask(engine, 'x').catch(({ code }) => code)).toBe('engine_failed');
  });

  it('ends when its caller leaves', async () => {
    const engine = start();
    await engine.load(SPEC);
    const leave = new AbortController();
    const left = ask(engine, 'wait 60000', leave.signal);
    setTimeout(() => leave.abort(), 50);
    await expect(left).rejects.toMatchObject({ code: 'internal_error' });
    await engine.unload();
  });

  it('ends with `timeout` if the engine does not answer', async () => {
    const engine = start();
    await engine.load(SPEC);
    await expect(ask(engine, 'wait 60000', undefined, 1)).rejects.toMatchObject({ code: 'timeout' });
  });
});

describe('a death', () => {
  it.each(['crash', 'exit', 'nonsense'])(
    'by %s fails the requests in flight, and the model is loaded again',
    async (how) => {
      const engine = start();
      await engine.load(SPEC);
      const bystander = ask(engine, 'wait 60000');
      bystander.catch(() => {});
      await expect(ask(engine, how)).rejects.toMatchObject({
        code: 'engine_failed',
        message: expect.stringMatching(
          /^The engine process .*\. This request was in its queue or being answered\. The engine is starting again: /u,
        ),
      });
      await expect(bystander).rejects.toMatchObject({ code: 'engine_failed' });
      expect(await ask(engine, 'x')).toBe('{"value":"x"}');
      expect(engine.status()).toMatchObject({ state: 'loaded', restarts: 1 });
    },
  );

  it.each([
    ['hang', 'step', /did not finish a step of the model for/u],
    ['hang while preparing', 'text', /made no progress with the model's tokenizer or chat template for/u],
  ] as const)('%s: the process is killed', async (how, phase, reason) => {
    const engine = start({ silenceLimits: { [phase]: 1_000 } });
    await engine.load(SPEC);
    // Other callers' requests must not make it look alive.
    const others = setInterval(() => void ask(engine, 'x').catch(() => {}), 100);
    await expect(ask(engine, how)).rejects.toMatchObject({ code: 'engine_failed' });
    clearInterval(others);
    expect(engine.status().reason).toMatch(reason);
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });

  it('of a process whose tokenizer hangs does not delay a load', async () => {
    const engine = start();
    await engine.load(SPEC);
    const stuck = ask(engine, 'hang while preparing').catch((error: Error) => error);
    await delay(100);
    // The limit of a step, two minutes, is longer than this test may take.
    await engine.load({ ...SPEC, model: 'test/other' as ModelId });
    expect(await stuck).toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(/It had not finished checking this request\. No model is loaded now: /u),
    });
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });

  it.each([
    ['/hang', 'open', /did not open the model for/u],
    ['/hang in text', 'text', /tokenizer or chat template for/u],
  ] as const)('a load of %s ends', async (dir, phase, message) => {
    const engine = start({ silenceLimits: { [phase]: 1_000 } });
    await expect(engine.load({ ...SPEC, dir })).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(message),
    });
    await engine.load(SPEC);
  });

  it.runIf(process.platform === 'linux')('does not end a load that gets little processor time', async () => {
    const engine = start({ silenceLimits: { open: 1_000 } });
    expect(await engine.load({ ...SPEC, dir: '/starved' })).toMatchObject({ model: SPEC.model });
  });

  it('a process whose JavaScript values grow without end is ended by its own heap', async () => {
    const engine = start({ silenceLimits: { text: 60_000 } });
    await engine.load(SPEC);
    await expect(ask(engine, 'hoard values', undefined, 60_000)).rejects.toMatchObject({ code: 'engine_failed' });
    expect(engine.status().reason).toMatch(/ran out of memory for its own data/u);
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });

  it('a process that uses too much memory is killed', async () => {
    const engine = start({ memoryLimitBytes: 400 * 1024 * 1024 });
    await engine.load(SPEC);
    await expect(ask(engine, 'grow')).rejects.toMatchObject({ code: 'engine_failed' });
    expect(engine.status().reason).toMatch(/used \d+ MB of memory, more than the 400 MB it may/u);
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });

  it('a model that no longer loads is retried after growing pauses, until another load', async () => {
    let restarts = 0;
    const engine = start({ onRestart: () => restarts++, restartWaitMs: 400 });
    const spec = { ...SPEC };
    await engine.load(spec);
    spec.dir = '/broken';
    await expect(ask(engine, 'crash')).rejects.toMatchObject({ code: 'engine_failed' });
    await expect(ask(engine, 'x')).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(/again/u),
    });
    const reason = 'The graph is damaged.';
    await vi.waitFor(() => expect(engine.status()).toMatchObject({ state: 'restarting', reason }), { timeout: 30_000 });
    expect(restarts).toBeGreaterThan(0);
    expect(restarts).toBeLessThan(5);
    await engine.load(SPEC);
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });
});

it('survives 25 deaths: no request is lost, no process or listener stays', async () => {
  const engine = start();
  await engine.load(SPEC);
  const leave = new AbortController();
  const listeners = () =>
    process.listenerCount('exit') + process.listenerCount('SIGTERM') + process.listenerCount('message');
  const before = listeners();
  for (let death = 1; death <= 25; death++) {
    const [killed, bystander] = await Promise.allSettled([
      ask(engine, 'crash', leave.signal),
      ask(engine, 'wait 60000', leave.signal),
    ]);
    for (const { status, reason } of [killed, bystander] as PromiseRejectedResult[]) {
      expect({ status, code: reason.code }).toEqual({ status: 'rejected', code: 'engine_failed' });
    }
    expect(await ask(engine, `after ${death}`, leave.signal)).toBe(`{"value":"after ${death}"}`);
  }
  expect(engine.status()).toMatchObject({ state: 'loaded', restarts: 25 });
  expect(listeners()).toBeLessThanOrEqual(before);
  expect(events.getEventListeners(leave.signal, 'abort')).toEqual([]);
  expect(childrenOf(process.pid)).toHaveLength(1);
}, 600_000);

it('ignores Ctrl-C, which reaches it too: the server ends it', async () => {
  const engine = start();
  await engine.load(SPEC);
  const slow = ask(engine, 'wait 300');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(engine.status().pid!, signal);
  expect(await slow).toBe('{"value":"wait 300"}');
  expect(engine.status().restarts).toBe(0);
});

it('gets no secrets in its environment, and sends no telemetry', async () => {
  process.env.ASSAY_TEST_API_KEY = 'sk-secret';
  const engine = start();
  await engine.load(SPEC);
  expect(await ask(engine, 'environment')).not.toContain('sk-secret');
  expect(await ask(engine, 'environment')).toContain('PATH');
  expect(await ask(engine, 'environment')).toContain('ORT_DISABLE_TELEMETRY');
  delete process.env.ASSAY_TEST_API_KEY;
});

it.each(['/fine', '/hang'])('does not outlive the server (model %s)', async (dir) => {
  const server = spawn(process.execPath, [fileURLToPath(new URL('./doomed-server.ts', import.meta.url)), dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await events.once(server.stdout!.setEncoding('utf8'), 'data')) as [string];
  const child = Number(line);
  expect(child).toBeGreaterThan(0);
  server.kill('SIGKILL');
  await vi.waitFor(() => expect(() => process.kill(child, 0)).toThrow(), { timeout: 30_000 });
});

describe('compile', () => {
  const entry = new URL('./scripted-child.ts', import.meta.url);
  const compiler = new Compiles({ log: pino({ level: 'silent' }), entry, watchMs: 50 });
  const spec = { source: '/fine', target: '/t', device: 'CPU' as const, precision: 'auto' as const, maxPromptLen: 8 };

  it('reports progress, beside a model that answers', async () => {
    const engine = start();
    await engine.load(SPEC);
    const seen: unknown[] = [];
    const compiled = compiler.compile(spec, { onProgress: (progress) => seen.push(progress) });
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
    expect(await compiled).toMatchObject({
      device: 'CPU',
      maxPromptLen: 8,
      precision: 'int8',
      choice: { reason: 'scripted' },
    });
    expect(seen).toEqual([1, 2].map((done) => ({ step: 'weights', done, total: 2 })));
    expect(engine.status().restarts).toBe(0);
  });

  it('fails alone', async () => {
    const engine = start();
    await engine.load(SPEC);
    await expect(compiler.compile({ ...spec, source: '/crash' })).rejects.toMatchObject({
      code: 'engine_failed',
      message:
        'The compile process ended with code 1. Try again. If that fails too, load another model, or other files of this one; the log has the details.',
    });
    expect(await ask(engine, 'x')).toBe('{"value":"x"}');
  });

  it('is killed by an abort', async () => {
    const leave = new AbortController();
    const compiled = compiler.compile(
      { ...spec, source: '/slow' },
      { signal: leave.signal, onProgress: () => leave.abort() },
    );
    await expect(compiled).rejects.toMatchObject({
      message: 'The compile was cancelled. Load or compile the model again to start over.',
    });
  });
});

it('close ends the process', async () => {
  const engine = start();
  await engine.load(SPEC);
  const waiting = ask(engine, 'wait 60000');
  waiting.catch(() => {});
  await delay(50);
  await engine.close();
  await expect(waiting).rejects.toMatchObject({ code: 'engine_failed' });
  expect(engine.status()).toMatchObject({ state: 'unloaded', rssBytes: null });
});

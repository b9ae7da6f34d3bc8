import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Call, InferenceBackend } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { PluginTarget } from '../../runtime/ort-plugin/plugin-target.ts';
import { TEXT_FILES } from '../../runtime/store/model-files.ts';
import { Compiles } from '../../runtime/supervisor/children/compiles.ts';
import {
  type AnsweringModel,
  createEngineBackend,
  type EngineBackendOptions,
} from '../../runtime/supervisor/engine-backend.ts';
import { MediaProcess } from '../../runtime/supervisor/media/media-process.ts';
import { createEngineMetrics } from '../../runtime/supervisor/metrics.ts';
import { Supervisor, type SupervisorOptions } from '../../runtime/supervisor/supervisor.ts';
import { modelFixture } from '../fixture.ts';

export const MODEL = 'test/tiny' as ModelId;

/** The real engine process with a tiny model, and the backend over it. */
export interface Machine {
  /** Returns the value of a metric, over all of its labels or with these: `name` or `name{label="value"}`. */
  metric(name: string): Promise<number>;
  engine: Supervisor;
  backend: InferenceBackend;
  load(): Promise<void>;
  close(): Promise<void>;
}

interface MachineOptions {
  maxPromptLen?: number;
  chatMaxTokens?: number;
  /** Milliseconds until a request fails with `timeout`. */
  timeoutMs?: number;
  onAnswered?: EngineBackendOptions['onAnswered'];
  /** The device to run on; absent: the CPU. */
  plugin?: PluginTarget;
  /** Changes the compiled model's files before it is loaded. */
  edit?(folder: string): void;
}

/** Compiles a fixture model (`optimum/qwen3`), or one at an absolute path, into a folder of its own and loads it. */
export async function startMachine(
  fixture: string,
  {
    maxPromptLen = 512,
    chatMaxTokens = 1024,
    timeoutMs = 60_000,
    onAnswered,
    plugin,
    edit,
    ...options
  }: Partial<SupervisorOptions> & MachineOptions = {},
): Promise<Machine> {
  const source = modelFixture(fixture);
  const target = mkdtempSync(join(tmpdir(), 'assay-compiled-'));
  const log = pino({ level: 'silent' });
  const engine = new Supervisor({ log, watchMs: 50, ...options });
  const metrics = createEngineMetrics(() => [engine.status()]);
  const media = new MediaProcess({ log, ...(options.isolation ? { isolation: options.isolation } : {}) });
  const models = {
    listModels: async () => [{ id: MODEL, status: 'compiled' as const }],
    loadedModels: () => loadedIn(engine),
  };
  const backend = createEngineBackend({
    models,
    media,
    metrics,
    onAnswered,
    log,
    timeoutMs,
    chatMaxTokens,
    logPrompts: false,
  });
  const onDevice = plugin ? { plugin } : {};
  const device = plugin ? 'NPU' : 'CPU';
  const compiler = new Compiles({ log, watchMs: 50, ...options });
  await compiler.compile({ source, target, device, precision: 'keep', maxPromptLen, ...onDevice });
  for (const name of TEXT_FILES)
    if (existsSync(join(source, name))) copyFileSync(join(source, name), join(target, name));
  edit?.(target);
  const machine: Machine = {
    engine,
    backend,
    async metric(name) {
      const lines = (await metrics.registry.metrics()).split('\n');
      const values = lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
      return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
    async load() {
      await engine.load({ model: MODEL, dir: target, threads: 1, ...onDevice });
    },
    async close() {
      await engine.close();
      media.close();
      rmSync(target, { recursive: true });
    },
  };
  await machine.load().catch(async (error: unknown) => {
    await machine.close();
    throw error;
  });
  return machine;
}

/** Returns the model in an engine as the backend sees it; none unless it is loaded or being started again. */
export function loadedIn(engine: Supervisor): AnsweringModel[] {
  const { state, model, info } = engine.status();
  if (!model || (state !== 'loaded' && state !== 'restarting')) return [];
  return [{ model, info, engine, used: () => {} }];
}

export function newCall(signal = new AbortController().signal): Call {
  return { requestId: 'test', signal, admit: async () => {} };
}

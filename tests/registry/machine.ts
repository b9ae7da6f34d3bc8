import * as fs from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import { systemClock } from '../../lib/clock.ts';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { DownloadReport, HostDownloadEvent } from '../../lib/models/host.ts';
import type { DeviceFigures } from '../../lib/schema/device-figures.ts';
import type { Precision } from '../../lib/schema/precision.ts';
import { readManifest } from '../../runtime/compile/manifest.ts';
import { providersOf } from '../../runtime/device/device-table.ts';
import type { PullContext } from '../../runtime/hub/pull-context.ts';
import { TRANSFER_SETTINGS } from '../../runtime/hub/pull-context.ts';
import { type LoadSpec, type ModelInfo, NO_LOAD } from '../../runtime/protocol/messages.ts';
import type { CompileContext } from '../../runtime/registry/ensure-compiled.ts';
import type { ModelEngine } from '../../runtime/registry/hosted-model.ts';
import { type HostOptions, LocalModelHost } from '../../runtime/registry/model-host.ts';
import { Calibrations } from '../../runtime/store/calibrations.ts';
import { StorePaths } from '../../runtime/store/paths.ts';
import type { Compiles } from '../../runtime/supervisor/children/compiles.ts';
import { LifeCycle, reasonOf } from '../../runtime/supervisor/life-cycle.ts';
import type { EngineStatus } from '../../runtime/supervisor/supervisor.ts';
import { compileModel, compileReport } from '../../runtime/worker/compile-model.ts';
import { modelFixture } from '../fixture.ts';
import type { HubServer } from '../hub/hub-server.ts';
import { machine as pullMachine } from '../hub/pull.ts';
import { folderRepository, type HubRepository } from '../hub/repository.ts';

/** Returns a real tiny model (`optimum/qwen3`, `genai/llama`) as a repository of the test hub. */
export function fixtureModel(
  fixture: string,
  id: string,
  access: HubRepository['access'] = 'public',
): Promise<HubRepository> {
  return folderRepository(modelFixture(fixture), id, access);
}

/**
 * Engines whose loading is scripted, so that a test decides when and how it ends; compiling is real, in this process.
 * The suites against a whole server use the real engine process.
 */
export class ScriptedEngine implements Pick<Compiles, 'compile'> {
  /** The promise that `load` waits for. */
  loading: Promise<void> = Promise.resolve();
  /** The promise that `unload` waits for: running requests. */
  inFlight: Promise<void> = Promise.resolve();
  /** The promise that `compile` waits for before it begins. */
  compiling: Promise<void> = Promise.resolve();
  /** Throws if a precision should give wrong numbers. */
  numbersOf: (precision: Precision) => void = () => undefined;
  /** True if a GPU compiles; loading on it fails in any case. */
  gpuCompiles = false;
  /** The measured figures of a device behind a plugin, and whether it then loads. */
  plugin: { figures: DeviceFigures; loads: boolean } | null = null;
  compiles = 0;
  /** Bytes that each engine process has, and requests that it has admitted. */
  figures: { rssBytes: number | null; admitted: number } = { rssBytes: null, admitted: 0 };
  readonly calls: string[] = [];
  /** The life of the model whose engine was created last. */
  #life = new LifeCycle();

  /** Creates the engine of one model. */
  readonly create = (): ModelEngine => {
    const life = new LifeCycle();
    this.#life = life;
    return {
      status: () => this.#status(life),
      onEvent: (listener) => life.onEvent(listener),
      beginLoad: (model) => life.apply('load', { model }),
      failLoad: (error) => life.apply('failed', { reason: reasonOf(error) }),
      load: (spec) => this.#load(life, spec),
      unload: () => this.#unload(life),
      beginClose: () => undefined,
      close: async () => life.close(),
      call: () => Promise.reject(new Error('no calls')),
    };
  };

  status(): EngineStatus {
    return this.#status(this.#life);
  }

  #status({ now }: LifeCycle): EngineStatus {
    const idle = {
      ...NO_LOAD,
      admittedTokens: 0,
      restarts: 0,
      pid: null,
      memory: null,
      silentMs: null,
      unresponsive: false,
    };
    return { ...now, device: now.info?.device ?? null, ...idle, ...this.figures };
  }

  /** Ends the process; it stays `restarting` until `recover`. */
  die(reason: string): void {
    this.#life.apply('died', { reason });
  }

  /** Fails an attempt to start the process again. */
  failRestart(reason: string): void {
    this.#life.apply('failed', { reason });
  }

  recover(): void {
    this.#life.apply('recovered');
  }

  async #load(life: LifeCycle, { model, dir, plugin }: LoadSpec): Promise<ModelInfo> {
    this.calls.push(`load ${model}`);
    try {
      await this.loading;
      await fs.access(join(dir, 'tokenizer.json'));
      const { maxPromptLen, contextLength, device, precision } = readManifest(dir);
      if (device !== 'CPU' && !(plugin && this.plugin?.loads))
        throw new AssayError('engine_failed', 'no such device here');
      this.numbersOf(precision);
      const info = { model, device, maxPromptLen, contextLength, loadMs: 1 };
      life.apply('loaded', { info });
      return info;
    } catch (error) {
      life.apply('failed', { reason: reasonOf(error) });
      throw error;
    }
  }

  async #unload(life: LifeCycle): Promise<void> {
    this.calls.push('unload');
    life.apply('unload');
    await this.inFlight;
    if (life.now.state === 'unloading') life.apply('unloaded');
  }

  compile: Compiles['compile'] = async (spec, call = {}) => {
    this.compiles += 1;
    this.calls.push(`compile ${spec.device}`);
    if (spec.device !== 'CPU' && !this.gpuCompiles && !spec.plugin)
      throw new AssayError('engine_failed', 'no such device here');
    await Promise.race([
      this.compiling,
      new Promise((_, reject) => call.signal?.addEventListener('abort', () => reject(call.signal?.reason))),
    ]);
    const manifest = await compileModel({
      ...spec,
      ...(call.signal ? { signal: call.signal } : {}),
      ...(call.onProgress ? { onStep: call.onProgress } : {}),
    });
    const figures = spec.plugin && this.plugin ? { figures: this.plugin.figures } : {};
    return { ...compileReport(manifest), ...figures };
  };
}

type HostSettings = Pick<Partial<HostOptions>, 'memory' | 'loadOnDemand'>;

export interface TestHost {
  host: LocalModelHost;
  engine: ScriptedEngine;
  paths: StorePaths;
  download(model: ModelId, options?: { maxPromptLen?: number; allowDownload?: boolean }): Promise<DownloadReport>;
  /** Creates another host over the same files, as after a restart. */
  restarted(changes?: Partial<CompileContext>): TestHost;
}

/** Creates a host with an empty store, one bundled model (`assay/tiny`), and a scripted engine. */
export async function testHost(
  hub: HubServer,
  changes: Partial<CompileContext> = {},
  pulling: Partial<PullContext['settings']> = {},
  settings: HostSettings = {},
): Promise<TestHost> {
  const pull = await pullMachine(hub, { settings: pulling });
  const base = dirname(pull.paths.roots.hubCache);
  await bundleTiny(base);
  return hostOver(base, new ScriptedEngine(), { pull, changes, settings });
}

/** Copies the bundled model of these tests into a base folder. */
export async function bundleTiny(base: string): Promise<void> {
  await fs.cp(modelFixture('optimum/qwen2'), join(base, 'models/tiny'), { recursive: true });
}

/** Creates a host over the files of a base folder: `hub/`, `assay/`, `models/`. Without `pull` it cannot download. */
export function hostOver(
  base: string,
  engine: ScriptedEngine,
  {
    pull,
    changes = {},
    settings = {},
  }: { pull?: PullContext; changes?: Partial<CompileContext>; settings?: HostSettings } = {},
): TestHost {
  const paths = new StorePaths({
    hubCache: join(base, 'hub'),
    assayHome: join(base, 'assay'),
    bundled: join(base, 'models'),
  });
  const compile: CompileContext = {
    paths,
    compiler: engine,
    clock: systemClock,
    log: pino({ level: 'silent' }),
    devices: ['CPU'],
    drives: (device) => providersOf(device).length > 0,
    plugin: async () => null,
    automatic: true,
    precision: 'auto',
    kernels: 'AVX2',
    threads: 1,
    runtimeVersion: '1.30.0',
    freeBytes: async () => 1e12,
    ...changes,
  };
  const host = new LocalModelHost({
    calibrations: new Calibrations(paths),
    createEngine: engine.create,
    ...settings,
    pull: { ...((pull ?? { settings: TRANSFER_SETTINGS }) as PullContext), paths },
    compile,
  });
  return {
    host,
    engine,
    paths,
    download: async (model, options = {}) => {
      const events = host.download(model, { allowDownload: true, ...options });
      let last: HostDownloadEvent | undefined;
      for await (const event of events) last = event;
      if (last?.type !== 'done') throw new Error('the download did not end with its report');
      return last.report;
    },
    restarted: (again = {}) =>
      hostOver(base, new ScriptedEngine(), { ...(pull ? { pull } : {}), changes: { ...changes, ...again } }),
  };
}

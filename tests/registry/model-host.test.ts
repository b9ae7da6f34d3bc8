import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AssayError } from '../../lib/errors.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { HostDownloadEvent } from '../../lib/models/host.ts';
import type { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { tinyGguf } from '../../runtime/checkpoint/gguf/gguf.fixture.ts';
import { readManifest } from '../../runtime/compile/manifest.ts';
import { providersOf } from '../../runtime/device/device-table.ts';
import { wrongNumbers } from '../../runtime/engine/model.ts';
import type { CompileContext } from '../../runtime/registry/ensure-compiled.ts';
import { listCompiled } from '../../runtime/store/compiled-store.ts';
import { DTYPES } from '../../runtime/store/dtypes.ts';
import { findLocalModel } from '../../runtime/store/hub-cache.ts';
import { recordChoice } from '../../runtime/store/model-choice.ts';
import { StorePaths } from '../../runtime/store/paths.ts';
import { adapterFiles, checkpointFiles } from '../hub/checkpoint.ts';
import { HubServer } from '../hub/hub-server.ts';
import { hubRepository } from '../hub/repository.ts';
import { fixtureModel, type TestHost, testHost } from './machine.ts';

const QWEN = parseModelId('acme/qwen3');
const LLAMA = parseModelId('acme/llama');
const CHECKPOINT = parseModelId('acme/checkpoint');
const HOMELESS = parseModelId('acme/homeless');
const SCALED = parseModelId('acme/scaled');
const QUANTISED = parseModelId('acme/quantised');
const GGUF = parseModelId('acme/tiny-GGUF');
const STARTER = parseModelId('assay/tiny');
let hub: HubServer;

beforeAll(async () => {
  hub = await HubServer.start(
    await fixtureModel('optimum/qwen3', QWEN),
    await fixtureModel('genai/llama-int4', LLAMA),
    hubRepository(CHECKPOINT, await checkpointFiles()),
    hubRepository(HOMELESS, adapterFiles('/home/me/model')),
    hubRepository(SCALED, await checkpointFiles({ rope_scaling: { rope_type: 'dynamic', factor: 2 } })),
    hubRepository(GGUF, {
      'README.md': '# tiny',
      'tiny-Q4_K.gguf': Buffer.from(tinyGguf([['general.name', { text: 'four' }]])),
      'tiny-Q4_K_M.gguf': Buffer.from(tinyGguf()),
      'Q8_0/tiny-00001-of-00002.gguf': 'part',
      'mmproj-tiny.gguf': 'images',
    }),
    hubRepository(QUANTISED, await checkpointFiles({ quantization_config: { quant_method: 'awq', bits: 4 } })),
  );
});
afterAll(() => hub.stop());

/** Returns inode and size of each file in a directory. */
const listSizes = async (directory: string): Promise<[number, number][]> => {
  const stats = (await fs.readdir(directory)).map((name) => fs.stat(join(directory, name)));
  return (await Promise.all(stats)).map(({ ino, size }) => [ino, size]);
};

/** Returns a promise that rejects, and that nobody has to await. */
const failing = (error: Error): Promise<void> => {
  const promise = Promise.reject(error);
  promise.catch(() => undefined);
  return promise;
};
const gate = () => Promise.withResolvers<void>();
const statusOf = async ({ host }: Awaited<ReturnType<typeof testHost>>, id: string) =>
  (await host.listModels()).find((entry) => entry.id === id)?.status;

describe('download', () => {
  it.each([
    [QWEN, 512],
    [LLAMA, 512],
    [CHECKPOINT, 512],
  ])('fetches and compiles %s', async (model, maxPromptLen) => {
    const box = await testHost(hub);
    const report = await box.download(model);
    expect(report).toMatchObject({ model, state: 'compiled', compiled: true, max_prompt_len: maxPromptLen });
    expect(report.bytes).toBeGreaterThan(90_000);
    expect(await statusOf(box, model)).toBe('compiled');
    expect(await box.download(model)).toMatchObject({ bytes: 0, compiled: false });
  });

  it.each([
    [SCALED, /rope_scaling\.rope_type: "dynamic"/],
    [QUANTISED, /quantised \(awq\), which is not read here; use the copy of this model in bfloat16/],
  ])('of %s is refused by name before its weights are fetched', async (model, message) => {
    const box = await testHost(hub);
    const sent = () => [1, 2].map((shard) => hub.bytesSent(`model-0000${shard}-of-00002.safetensors`));
    const before = sent();
    await expect(box.download(model)).rejects.toThrow(message);
    expect(sent()).toEqual(before);
  });

  it('of a LoRA adapter that names no base model uses the one that is recorded for it', async () => {
    const box = await testHost(hub);
    await expect(box.download(HOMELESS)).rejects.toThrow(/assay pull <base model> --adapter/);
    await recordChoice(box.paths, HOMELESS, { base: CHECKPOINT });
    expect(await box.download(HOMELESS)).toMatchObject({ model: HOMELESS, state: 'compiled' });
    expect(await statusOf(box, CHECKPOINT)).toBe('downloaded');
    await fs.rm(box.paths.snapshots(CHECKPOINT), { recursive: true });
    await expect(box.host.load(HOMELESS, {})).rejects.toThrow(/is on this machine, but.*base model acme\/checkpoint/);
  });

  it('of a repository with several GGUF files lists them, and takes the one that was chosen', async () => {
    const box = await testHost(hub);
    await expect(box.download(GGUF)).rejects.toThrow(
      /several GGUF files: tiny-Q4_K\.gguf, tiny-Q4_K_M\.gguf\. .*--file/,
    );
    for (const [file, message] of [
      ['tiny', /Several of its GGUF files fit "tiny"/],
      ['q6', /None of its GGUF files is named "q6"\. It has Q8_0/],
      ['Q8_0', /has Q8_0\/tiny-00001-of-00002\.gguf, and a model in several files is not read/],
    ] as const) {
      await recordChoice(box.paths, GGUF, { file });
      await expect(box.download(GGUF)).rejects.toThrow(message);
    }
    await recordChoice(box.paths, GGUF, { file: 'q4_k' });
    const four = await box.download(GGUF);
    expect(four).toMatchObject({ state: 'compiled', compiled: true, max_prompt_len: 64 });
    expect(await box.download(GGUF)).toMatchObject({ bytes: 0, compiled: false });
    await recordChoice(box.paths, GGUF, { file: 'Q4_K_M' });
    await expect(box.host.load(GGUF, {})).rejects.toThrow(/None of its GGUF files is named "Q4_K_M"/);
    expect(await box.download(GGUF)).toMatchObject({ compiled: true });
    const local = await findLocalModel(box.paths, GGUF, { device: 'CPU' });
    expect(local?.files.graph).toBe('tiny-Q4_K_M.gguf');
    await box.host.remove(GGUF, { compiledOnly: false });
    await expect(box.download(GGUF)).rejects.toThrow(/several GGUF files/);
  });

  it('has steps all the way, and ends with the report', async () => {
    const box = await testHost(hub);
    const events: HostDownloadEvent[] = [];
    for await (const event of box.host.download(QWEN, { allowDownload: true })) events.push(event);
    const stages = new Set(events.map((event) => (event.type === 'progress' ? event.stage : event.type)));
    expect([...stages]).toEqual(expect.arrayContaining(['downloading', 'verifying', 'compiling', 'done']));
    expect(events.at(-1)?.type).toBe('done');
  });

  it('compiles to the precision that was asked for, and keeps the other', async () => {
    const box = await testHost(hub);
    const compiles: number[] = [];
    for (const precision of ['float', 'int8', 'float'] as const) {
      const again = box.restarted({ precision });
      await again.download(QWEN);
      compiles.push(again.engine.compiles);
    }
    expect(compiles).toEqual([1, 1, 0]);
    const [float, int8] = (await listCompiled(box.paths, QWEN)).sort((a, b) => a.directory.localeCompare(b.directory));
    expect([float, int8].map((form) => form?.record.fingerprint.precision)).toEqual(['float', 'int8']);
    const bytes = async (directory = '') => {
      const files = await fs.readdir(directory);
      const each = await Promise.all(files.map(async (name) => (await fs.stat(join(directory, name))).size));
      return each.reduce((sum, size) => sum + size, 0);
    };
    expect(await bytes(int8?.directory)).toBeLessThan(await bytes(float?.directory));
  });

  it('continues when its caller leaves, and a second call joins it', async () => {
    const box = await testHost(hub);
    const compiling = gate();
    box.engine.compiling = compiling.promise;
    for await (const event of box.host.download(QWEN, { allowDownload: true })) {
      if (event.type === 'progress' && event.stage === 'compiling') break;
    }
    expect(await statusOf(box, QWEN)).toBe('compiling');
    const second = box.download(QWEN);
    compiling.resolve();
    expect((await second).bytes).toBeGreaterThan(0);
    expect(box.engine.compiles).toBe(1);
  });

  it.each([
    ['the length that a running one takes by default', 512, 1],
    ['another', 64, 2],
  ])('with %s joins it, and compiles what is missing behind it', async (_, maxPromptLen, compiles) => {
    const box = await testHost(hub);
    const compiling = gate();
    box.engine.compiling = compiling.promise;
    const first = box.download(QWEN);
    await expect.poll(() => box.engine.compiles).toBe(1);
    const second = box.download(QWEN, { maxPromptLen });
    compiling.resolve();
    expect(await first).toMatchObject({ max_prompt_len: 512 });
    expect(await second).toMatchObject({ max_prompt_len: maxPromptLen });
    expect(box.engine.compiles).toBe(compiles);
  });

  it('asks the hub where a running one may not', async () => {
    const box = await testHost(hub);
    const [never, asked] = [box.download(QWEN, { allowDownload: false }), box.download(QWEN)];
    await expect(never).rejects.toMatchObject({ code: 'not_downloaded' });
    expect((await asked).bytes).toBeGreaterThan(0);
  });

  it('of what is on disk works without the hub, and allow_download:false never asks it', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    const before = hub.requests.length;
    expect(await box.download(QWEN, { allowDownload: false, maxPromptLen: 64 })).toMatchObject({
      bytes: 0,
      compiled: true,
      max_prompt_len: 64,
    });
    expect(await box.download(STARTER)).toMatchObject({ bytes: 0, compiled: true });
    expect(hub.requests.length).toBe(before);
    await expect(box.download(LLAMA, { allowDownload: false })).rejects.toMatchObject({ code: 'not_downloaded' });
  });

  it.each([15, 513, 1e9, 20.5])('with max_prompt_len %d is refused', async (maxPromptLen) => {
    const box = await testHost(hub);
    await expect(box.download(STARTER, { maxPromptLen })).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'max_prompt_len',
    });
  });
});

describe('load', () => {
  it.each(DTYPES)('finds the bundled model also where downloaded weights shall be %s', async (dtype) => {
    const { paths } = await testHost(hub);
    expect(await findLocalModel(paths, STARTER, { device: 'CPU', dtype })).toMatchObject({ origin: 'bundled' });
  });

  it('refuses a model whose configuration is too large to be read in the server', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    const found = await findLocalModel(box.paths, QWEN, { device: 'CPU' });
    await fs.truncate(join(found!.directory, 'config.json'), 5 * 1024 * 1024);
    await expect(box.host.load(QWEN, {})).rejects.toMatchObject({
      code: 'engine_failed',
      message: "The model's config.json is too large to read. Use another model.",
    });
  });

  it('compiles what is not compiled, loads, and says so', async () => {
    const box = await testHost(hub);
    expect(box.host.active()).toEqual({ state: 'unloaded', model: null, device: 'CPU' });
    expect(await statusOf(box, STARTER)).toBe('available');
    const report = await box.host.load(STARTER, {});
    expect(report).toMatchObject({ model: STARTER, device: 'CPU', compiled: true, max_prompt_len: 512 });
    expect(box.host.active()).toMatchObject({ state: 'loaded', model: STARTER, device: 'CPU' });
    expect(await statusOf(box, STARTER)).toBe('active');
    expect(await box.host.load(STARTER, {})).toMatchObject({ compiled: false, load_ms: 0 });
    expect(box.engine.calls).toEqual(['compile CPU', `load ${STARTER}`]);
  });

  it('with another max_prompt_len recompiles and swaps; without one the active model keeps its own', async () => {
    const box = await testHost(hub);
    await box.host.load(STARTER, { maxPromptLen: 64 });
    expect(await box.host.load(STARTER, {})).toMatchObject({ compiled: false, max_prompt_len: 64 });
    expect(await box.host.load(STARTER, { maxPromptLen: 128 })).toMatchObject({ compiled: true, max_prompt_len: 128 });
    expect(box.engine.calls.filter((call) => call === 'unload')).toHaveLength(1);
  });

  it('of another model lets the first answer until the new one is compiled, then swaps', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    await box.host.load(STARTER, {});
    const [compiling, inFlight, loading] = [gate(), gate(), gate()];
    Object.assign(box.engine, { compiling: compiling.promise, inFlight: inFlight.promise, loading: loading.promise });
    const load = box.host.load(QWEN, { maxPromptLen: 32 });
    await expect.poll(() => box.engine.compiles).toBe(3);
    expect(box.host.active()).toMatchObject({ state: 'loaded', model: STARTER });
    expect(await statusOf(box, QWEN)).toBe('compiling');
    compiling.resolve();
    await expect.poll(() => box.host.active().state).toBe('unloading');
    expect(box.host.active().model).toBe(STARTER);
    inFlight.resolve();
    await expect.poll(() => box.host.active()).toMatchObject({ state: 'loading', model: QWEN });
    loading.resolve();
    expect(await load).toMatchObject({ model: QWEN, max_prompt_len: 32 });
  });

  it('of what is not here is 404 with the command that fetches it, and the active model stays', async () => {
    const box = await testHost(hub);
    await expect(box.host.load(QWEN, {})).rejects.toMatchObject({
      code: 'model_not_found',
      message: expect.stringContaining('assay pull acme/qwen3'),
    });
    expect(box.host.active().state).toBe('unloaded');
  });

  it.each([
    [
      'one shard',
      ['model-00002-of-00002.safetensors'],
      /It has 1 of the 2 files of its weights, but lacks model-00002/,
    ],
    ['all shards', ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'], /none of the files/],
    ['its tokenizer', ['tokenizer.json'], /It has no tokenizer\.json\./],
  ])('of what is here but for %s says what is missing, and never that it is absent', async (_, names, message) => {
    const box = await testHost(hub);
    await box.download(CHECKPOINT);
    const [commit = ''] = await fs.readdir(box.paths.snapshots(CHECKPOINT));
    for (const name of names) await fs.rm(box.paths.snapshotFile(CHECKPOINT, commit, name));
    const load = () => box.host.load(CHECKPOINT, {});
    const download = () => box.download(CHECKPOINT, { allowDownload: false });
    for (const ask of [load, download]) {
      await expect(ask()).rejects.toThrow(message);
      await expect(ask()).rejects.toThrow(
        /is on this machine, but.*Fetch what is missing: assay pull acme\/checkpoint/,
      );
    }
  });

  it('of what is spelt almost like a model that is here names that model', async () => {
    const box = await testHost(hub);
    const load = box.host.load(parseModelId('assay/tyni'), {});
    await expect(load).rejects.toThrow(
      'assay/tyni is not on this machine. Did you mean assay/tiny? Else fetch it: assay pull assay/tyni',
    );
  });

  it('of the active model, whose files another program removed, does not suggest the same name', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    await box.host.load(QWEN, {});
    await fs.rm(box.paths.snapshots(QWEN), { recursive: true });
    await expect(box.host.load(QWEN, {})).rejects.toThrow(
      'acme/qwen3 is not on this machine. Fetch it: assay pull acme/qwen3',
    );
  });

  it('that fails leaves error with its reason; the next load and unload work', async () => {
    const box = await testHost(hub);
    box.engine.loading = failing(new AssayError('engine_failed', 'The graph has a node that nobody knows.'));
    await expect(box.host.load(STARTER, {})).rejects.toThrow('nobody knows');
    expect(box.host.active()).toMatchObject({
      state: 'failed',
      model: STARTER,
      reason: 'The graph has a node that nobody knows.',
    });
    expect(await statusOf(box, STARTER)).toBe('error');
    box.engine.loading = Promise.resolve();
    await box.host.load(STARTER, {});
    expect(box.host.active()).toMatchObject({ state: 'loaded', model: STARTER, device: 'CPU' });
    box.engine.loading = failing(new Error('/secret/path is odd'));
    await expect(box.host.load(STARTER, { maxPromptLen: 16 })).rejects.toThrow();
    expect(box.host.active().reason).not.toContain('/secret');
    expect(await box.host.unload()).toEqual({ model: null });
    expect(box.host.active()).toEqual({ state: 'unloaded', model: null, device: 'CPU' });
  });

  it('joins a load of the same, and refuses others and unload meanwhile', async () => {
    const box = await testHost(hub);
    const loading = gate();
    box.engine.loading = loading.promise;
    const both = [box.host.load(STARTER, {}), box.host.load(STARTER, {})];
    await expect.poll(() => box.host.active().state).toBe('loading');
    await expect(box.host.load(STARTER, { maxPromptLen: 32 })).rejects.toMatchObject({ code: 'operation_in_progress' });
    await expect(box.host.unload()).rejects.toMatchObject({ code: 'operation_in_progress' });
    loading.resolve();
    expect(await both[0]).toEqual(await both[1]);
    expect(box.engine.calls.filter((call) => call.startsWith('load'))).toHaveLength(1);
  });

  it('of the active model succeeds while it is downloaded again, but not with another length', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    await box.host.load(QWEN, {});
    const compiling = gate();
    box.engine.compiling = compiling.promise;
    const again = box.download(QWEN, { maxPromptLen: 64 });
    await expect.poll(() => box.engine.compiles).toBe(2);
    expect(await box.host.load(QWEN, {})).toMatchObject({ load_ms: 0, compiled: false, max_prompt_len: 512 });
    await expect(box.host.load(QWEN, { maxPromptLen: 64 })).rejects.toMatchObject({ code: 'operation_in_progress' });
    compiling.resolve();
    await again;
  });

  it('never shows a device that nothing on this machine drives', async () => {
    const box = await testHost(hub, { devices: ['NPU', 'CPU'] });
    expect(box.host.active().device).toBe(providersOf('NPU').length > 0 ? 'NPU' : 'CPU');
    expect(await box.host.load(STARTER, {})).toMatchObject({ device: 'CPU' });
    expect(box.engine.calls).toContain('compile NPU');
  });

  it('falls back to the next device, and reports the one that runs', async () => {
    const box = await testHost(hub, { devices: ['GPU', 'CPU'] });
    expect(box.host.active().device).toBe('GPU');
    expect(await box.host.load(STARTER, {})).toMatchObject({ device: 'CPU' });
    expect(box.engine.calls).toEqual(['compile GPU', 'compile CPU', `load ${STARTER}`]);
  });

  describe('on a device behind a plugin', () => {
    const RIGHT = { error: 0.01, deviceMs: 20, cpuMs: 50 };
    const target = {
      plugin: 'test 1',
      provider: 'Test',
      registration: 'Test',
      library: '/test.so',
      libraryPath: [],
      compiles: true,
      hardware: 'NPU' as const,
      options: {},
    };
    const onNpu = (changes: Partial<CompileContext> = {}): Promise<TestHost> =>
      testHost(hub, {
        devices: ['NPU', 'CPU'],
        drives: () => true,
        plugin: async (device) => (device === 'NPU' ? { target, identity: 'NPU, driver 1' } : null),
        ...changes,
      });

    it.each<[string, { figures: DeviceFigures; loads: boolean }, Partial<CompileContext>, object]>([
      ['that is fast', { figures: RIGHT, loads: true }, {}, { device: 'NPU', used: true, figures: RIGHT }],
      [
        'that is slower than the CPU',
        { figures: { ...RIGHT, deviceMs: 60 }, loads: true },
        {},
        { device: 'CPU', used: false, reason: /60 ms where the CPU takes 50 ms; --device npu/ },
      ],
      [
        'that is slower and asked for',
        { figures: { ...RIGHT, deviceMs: 60 }, loads: true },
        { automatic: false },
        { device: 'NPU', used: true },
      ],
      [
        'that computes wrongly, asked for or not',
        { figures: { ...RIGHT, error: 1.1 }, loads: true },
        { automatic: false },
        { device: 'CPU', used: false, reason: /differ from the CPU's by 1\.1/ },
      ],
      [
        'that vanishes before the load',
        { figures: RIGHT, loads: false },
        {},
        { device: 'CPU', used: false, reason: /no such device/, figures: null },
      ],
    ])('%s', async (_, plugin, changes, { device, ...expected }: { device?: string; reason?: RegExp }) => {
      const box = await onNpu(changes);
      box.engine.plugin = plugin;
      expect(await box.host.load(STARTER, {})).toMatchObject({ device });
      const reason = expect.stringMatching(expected.reason ?? /20|60/);
      const decision = { ...expected, reason, device: 'NPU' };
      expect(box.host.active()).toMatchObject({ state: 'loaded', device, devices: [decision] });
      await box.host.unload();
      expect(box.host.active().devices).toBeUndefined();
      // The measurement is kept: nothing is compiled again.
      const { compiles } = box.engine;
      await box.host.load(STARTER, {});
      expect(box.engine.compiles).toBe(compiles);
    });

    it('that nothing drives any more', async () => {
      const missing = new AssayError('engine_failed', 'Nothing on this machine drives its NPU.');
      const box = await onNpu({
        plugin: (device) => (device === 'NPU' ? Promise.reject(missing) : Promise.resolve(null)),
      });
      expect(await box.host.load(STARTER, {})).toMatchObject({ device: 'CPU' });
      expect(box.host.active().devices).toEqual([
        { device: 'NPU', used: false, reason: missing.message, figures: null },
      ]);
    });

    it('whose driver is another one is compiled for again, and the old form goes', async () => {
      const box = await onNpu();
      box.engine.plugin = { figures: RIGHT, loads: true };
      await box.host.load(STARTER, {});
      const again = box.restarted({ plugin: async () => ({ target, identity: 'NPU, driver 2' }) });
      again.engine.plugin = { figures: RIGHT, loads: true };
      expect(await again.host.load(STARTER, {})).toMatchObject({ device: 'NPU', compiled: true });
      const forms = await listCompiled(again.paths, STARTER);
      expect(forms.map(({ record }) => record.fingerprint.plugin)).toEqual(['NPU, driver 2']);
    });
  });

  it('falls back when a device takes the compile and not the load, and does not try it again', async () => {
    const box = await testHost(hub, { devices: ['GPU', 'CPU'] });
    box.engine.gpuCompiles = true;
    expect(await box.host.load(STARTER, {})).toMatchObject({ device: 'CPU', compiled: true });
    expect(box.host.active()).toMatchObject({ state: 'loaded', model: STARTER, device: 'CPU' });
    await box.host.unload();
    expect(box.host.active().device).toBe('CPU');
    await box.host.load(STARTER, {});
    expect(box.engine.calls.filter((call) => call !== 'unload')).toEqual([
      'compile GPU',
      `load ${STARTER}`,
      'compile CPU',
      `load ${STARTER}`,
      `load ${STARTER}`,
    ]);
  });

  it('compiles another form where the first gives wrong numbers, keeps it, and says why', async () => {
    const box = await testHost(hub);
    let first: string | undefined;
    box.engine.numbersOf = (form) => {
      first ??= form;
      if (form === first) throw wrongNumbers(form, 0.4, 0.2);
    };
    expect(await box.host.load(STARTER, {})).toMatchObject({ device: 'CPU', compiled: true });
    const { precision, precisionReason } = box.host.active();
    expect(precision).not.toBe(first);
    expect(precisionReason).toContain(`Refused at load for wrong numbers: ${first}`);
    const { compiles } = box.engine;
    await box.restarted().host.load(STARTER, {});
    expect(box.engine.compiles).toBe(compiles);
  });

  it('warns of a form that was asked for and is less accurate than auto accepts', async () => {
    const warned = await testHost(hub, { precision: 'int4' });
    const report = { precision: 'int4', precision_warning: expect.stringContaining('--precision auto') };
    expect(await warned.download(STARTER)).toMatchObject(report);
    expect(await warned.host.load(STARTER, {})).toMatchObject(report);
    const { precision_reason: why, precision_warning: none } = await (await testHost(hub)).host.load(STARTER, {});
    expect(why).toContain('logits off by');
    expect(none).toBeUndefined();
  });

  it('says what to do where the form that was asked for gives wrong numbers', async () => {
    const box = await testHost(hub, { precision: 'int8' });
    box.engine.numbersOf = (form) => {
      throw wrongNumbers(form, 0.4, 0.2);
    };
    await expect(box.host.load(STARTER, {})).rejects.toThrow('--precision auto');
    expect(box.host.active()).toMatchObject({ state: 'failed', reason: expect.stringContaining('--precision auto') });
  });

  it('of another model while the engine is started again ends that engine, also where the load then fails', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    await box.host.load(STARTER, {});
    box.engine.die('The engine process ended with code 1.');
    box.engine.loading = failing(new AssayError('engine_failed', 'no'));
    await expect(box.host.load(QWEN, {})).rejects.toThrow('no');
    expect(box.engine.calls).toContain('unload');
    expect(box.host.active()).toMatchObject({ state: 'failed', model: QWEN });
    expect(await box.host.remove(STARTER, { compiledOnly: true })).toMatchObject({ model: STARTER });
  });

  it('keeps its files while it waits for requests in flight, whatever is downloaded meanwhile', async () => {
    const moved = await HubServer.start(await fixtureModel('optimum/qwen3', QWEN));
    const box = await testHost(moved);
    await box.download(QWEN);
    await box.host.load(STARTER, {});
    const inFlight = gate();
    box.engine.inFlight = inFlight.promise;
    const load = box.host.load(QWEN, {});
    await expect.poll(() => box.host.active().state).toBe('unloading');
    expect(await statusOf(box, QWEN)).toBe('loading');
    moved.put(await fixtureModel('optimum/llama', QWEN));
    expect(await box.download(QWEN)).toMatchObject({ compiled: true });
    inFlight.resolve();
    expect(await load).toMatchObject({ model: QWEN });
    expect(await listCompiled(box.paths, QWEN)).toHaveLength(2);
    await moved.stop();
  });

  it('compiles and loads again after a crash, if another process removed the compiled files meanwhile', async () => {
    const box = await testHost(hub);
    await box.host.load(STARTER, { maxPromptLen: 32 });
    await fs.rm(box.paths.compiledModel(STARTER), { recursive: true });
    box.engine.die('The engine process was ended by SIGSEGV.');
    box.engine.failRestart('The compiled model is incomplete.');
    await expect.poll(() => box.host.active(), { timeout: 20_000 }).toMatchObject({ state: 'loaded', model: STARTER });
    expect(await box.host.load(STARTER, { maxPromptLen: 32 })).toMatchObject({ compiled: false });
    expect(box.engine.calls.filter((call) => call.startsWith('compile'))).toHaveLength(2);
  });

  it('says that the weights are gone, too, after a crash', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    await box.host.load(QWEN, {});
    for (const gone of [box.paths.compiledModel(QWEN), box.paths.repository(QWEN)]) {
      await fs.rm(gone, { recursive: true });
    }
    box.engine.die('The engine process was ended by SIGSEGV.');
    box.engine.failRestart('The compiled model is incomplete.');
    await expect.poll(() => box.host.active().reason).toMatch(/^acme\/qwen3 is not on this machine/);
    expect(box.engine.status().state).toBe('failed');
  });

  it('whose restart fails keeps trying where its files are there', async () => {
    const box = await testHost(hub);
    await box.host.load(STARTER, {});
    box.engine.die('The engine process was ended by SIGSEGV.');
    box.engine.failRestart('There is not enough memory.');
    await sleep(100);
    expect(box.engine.status()).toMatchObject({ state: 'restarting', reason: 'There is not enough memory.' });
    expect(box.engine.compiles).toBe(1);
  });

  it('compiles again if another process removes the compiled files before they are read', async () => {
    const box = await testHost(hub);
    const loading = Promise.withResolvers<void>();
    box.engine.loading = loading.promise;
    const load = box.host.load(STARTER, {});
    await expect.poll(() => box.engine.calls.at(-1), { timeout: 20_000 }).toBe(`load ${STARTER}`);
    await fs.rm(box.paths.compiledModel(STARTER), { recursive: true });
    loading.resolve();
    expect(await load).toMatchObject({ compiled: true });
    expect(box.engine.compiles).toBe(2);
  });

  it('follows a crash of the engine and its return', async () => {
    const box = await testHost(hub);
    await box.host.load(STARTER, {});
    box.engine.die('The engine process was ended by SIGSEGV.');
    expect(box.host.active()).toMatchObject({
      state: 'restarting',
      model: STARTER,
      reason: expect.stringContaining('SIGSEGV'),
    });
    box.engine.recover();
    expect(box.host.active()).toMatchObject({ state: 'loaded', model: STARTER, device: 'CPU' });
    box.engine.die('The engine process ended with code 1.');
    await expect(box.host.remove(STARTER, { compiledOnly: true })).rejects.toMatchObject({ code: 'model_in_use' });
    expect(await box.host.unload()).toEqual({ model: STARTER });
    expect(box.engine.calls.at(-1)).toBe('unload');
    expect(box.host.active().state).toBe('unloaded');
  });
});

describe('unload', () => {
  it('waits for requests in flight; a second one joins; of an empty slot it is fine', async () => {
    const box = await testHost(hub);
    expect(await box.host.unload()).toEqual({ model: null });
    await box.host.load(STARTER, {});
    const inFlight = gate();
    box.engine.inFlight = inFlight.promise;
    const both = [box.host.unload(), box.host.unload()];
    await expect.poll(() => box.host.active().state).toBe('unloading');
    expect(await statusOf(box, STARTER)).toBe('unloading');
    await expect(box.host.load(STARTER, {})).rejects.toMatchObject({ code: 'operation_in_progress' });
    inFlight.resolve();
    expect(await Promise.all(both)).toEqual([{ model: STARTER }, { model: STARTER }]);
    expect(await statusOf(box, STARTER)).toBe('compiled');
  });
});

describe('delete', () => {
  const kinds = (report: { removed: readonly { kind: string }[] }) => report.removed.map(({ kind }) => kind);

  it('removes compiled files alone, or everything, and says what', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    expect(kinds(await box.host.remove(QWEN, { compiledOnly: true }))).toEqual(['compiled']);
    expect(await statusOf(box, QWEN)).toBe('downloaded');
    expect(kinds(await box.host.remove(QWEN, { compiledOnly: true }))).toEqual([]);
    await box.download(QWEN);
    expect(kinds(await box.host.remove(QWEN, { compiledOnly: false }))).toEqual(['compiled', 'weights', 'locks']);
    expect(await statusOf(box, QWEN)).toBeUndefined();
    for (const place of [box.paths.repository(QWEN), box.paths.compiledModel(QWEN), box.paths.locks(QWEN)]) {
      expect(await box.paths.real(place)).toBeNull();
    }
    await expect(box.host.remove(QWEN, { compiledOnly: false })).rejects.toMatchObject({ code: 'model_not_found' });
  });

  it('refuses another delete, a load and a download of the same model until it has ended', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    const removal = box.host.remove(QWEN, { compiledOnly: false });
    for (const other of [
      () => box.host.load(QWEN, {}),
      () => box.download(QWEN),
      () => box.host.remove(QWEN, { compiledOnly: true }),
    ]) {
      await expect(other()).rejects.toMatchObject({
        code: 'operation_in_progress',
        message: expect.stringContaining('being deleted'),
      });
    }
    expect(kinds(await removal)).toEqual(['compiled', 'weights', 'locks']);
    expect(box.host.active().state).toBe('unloaded');
    expect(await box.download(QWEN)).toMatchObject({ compiled: true });
  });

  it('of a model whose load has been asked for is refused from the first moment', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    const load = box.host.load(QWEN, {});
    await expect(box.host.remove(QWEN, { compiledOnly: false })).rejects.toMatchObject({ code: 'model_in_use' });
    expect(await load).toMatchObject({ model: QWEN, compiled: false });
  });

  it.each<[string, (box: Awaited<ReturnType<typeof testHost>>) => Promise<unknown>, unknown]>([
    ['a load that waits for it says that the model is gone', ({ host }) => host.load(QWEN, {}), 'model_not_found'],
    ['a download that waits for it fetches the model again', (box) => box.download(QWEN), 'compiled'],
  ])('by another process: %s', async (_, wait, outcome) => {
    const box = await testHost(hub);
    await box.download(QWEN);
    const [reached, go] = [gate(), gate()];
    const slow = new (class extends StorePaths {
      override async remove(target: string, counted?: Set<number>): Promise<number> {
        reached.resolve();
        await go.promise;
        return super.remove(target, counted);
      }
    })(box.paths.roots);
    const removal = box.restarted({ paths: slow }).host.remove(QWEN, { compiledOnly: false });
    await reached.promise;
    const waiting = wait(box).then(
      (report) => (report as { state?: string }).state,
      ({ code }) => code,
    );
    await expect.poll(() => statusOf(box, QWEN)).toMatch(/loading|compiling|downloading/);
    go.resolve();
    expect(kinds(await removal)).toEqual(['compiled', 'weights', 'locks']);
    expect(await waiting).toBe(outcome);
  });

  it('leaves the weights of a bundled model', async () => {
    const box = await testHost(hub);
    await box.download(STARTER);
    const report = await box.host.remove(STARTER, { compiledOnly: false });
    expect(kinds(report)).toEqual(['compiled']);
    expect(report.weightsLeft).toBe(true);
    expect(await statusOf(box, STARTER)).toBe('available');
  });

  it('of the active model, of one that is being loaded, and of one that is being unloaded is refused', async () => {
    const box = await testHost(hub);
    const [compiling, loading, inFlight] = [gate(), gate(), gate()];
    Object.assign(box.engine, { compiling: compiling.promise, loading: loading.promise, inFlight: inFlight.promise });
    const refused = async () => {
      for (const compiledOnly of [true, false]) {
        await expect(box.host.remove(STARTER, { compiledOnly })).rejects.toMatchObject({ code: 'model_in_use' });
      }
    };
    const load = box.host.load(STARTER, {});
    await expect.poll(() => box.engine.compiles).toBe(1);
    await refused();
    compiling.resolve();
    await expect.poll(() => box.engine.calls.at(-1)).toBe(`load ${STARTER}`);
    await refused();
    loading.resolve();
    await load;
    await refused();
    const unload = box.host.unload();
    await refused();
    inFlight.resolve();
    await unload;
    await box.host.remove(STARTER, { compiledOnly: true });
  });

  it('and load during a download are refused with how far it is; others go on', async () => {
    const box = await testHost(hub);
    const compiling = gate();
    box.engine.compiling = compiling.promise;
    const download = box.download(QWEN, { maxPromptLen: 64 });
    await expect.poll(() => box.engine.compiles).toBe(1);
    await expect(box.host.remove(QWEN, { compiledOnly: false })).rejects.toMatchObject({
      code: 'operation_in_progress',
    });
    await expect(box.host.load(QWEN, {})).rejects.toMatchObject({
      code: 'operation_in_progress',
      message: expect.stringContaining('being compiled now'),
    });
    await expect(box.download(QWEN, { maxPromptLen: 16 })).rejects.toMatchObject({ code: 'operation_in_progress' });
    box.engine.compiling = Promise.resolve();
    await box.host.load(STARTER, {});
    compiling.resolve();
    await download;
    await box.host.load(QWEN, {});
  });
});

describe('a compiled form', () => {
  it('is found by another process, and rebuilt for another runtime; the stale one is removed', async () => {
    const box = await testHost(hub);
    await box.download(STARTER);
    expect(await box.restarted().download(STARTER)).toMatchObject({ compiled: false });
    expect(await box.restarted({ runtimeVersion: '1.31.0' }).download(STARTER)).toMatchObject({ compiled: true });
    const forms = (await fs.readdir(box.paths.compiledModel(STARTER))).filter((name) => !name.startsWith('.'));
    expect(forms).toHaveLength(1);
  });

  it('is rebuilt where it would be computed by more threads than key heads, and stays where by fewer', async () => {
    const box = await testHost(hub);
    await box.download(STARTER);
    // The model has two key heads.
    for (const [threads, compiled] of [
      [2, false],
      [3, true],
      [8, false],
      [1, false],
    ] as const) {
      const machine = box.restarted({ threads });
      const [listed] = await machine.host.listModels();
      expect(listed).toMatchObject({ id: STARTER, status: compiled ? 'available' : 'compiled' });
      expect(await machine.host.load(STARTER, {})).toMatchObject({ compiled });
    }
    const [form] = await listCompiled(box.paths, STARTER);
    expect(readManifest(form!.directory).threads).toBe(3);
  });

  it('of another prompt length has its files in common with it, all but those that tell the length', async () => {
    const box = await testHost(hub);
    for (const maxPromptLen of [64, 65, 66]) await box.download(STARTER, { maxPromptLen });
    const inodes = async (name: string) => {
      const each = (await listCompiled(box.paths, STARTER)).map(({ directory }) => fs.stat(join(directory, name)));
      return (await Promise.all(each)).map(({ ino }) => ino);
    };
    const [form] = await listCompiled(box.paths, STARTER);
    const names = form!.record.files.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['compiled.json', 'model.onnx', 'tokenizer.json', 'weights.bin']));
    for (const name of names) expect(new Set(await inodes(name)).size, name).toBe(name === 'compiled.json' ? 3 : 1);
    // Hard links share their bytes: a flipped bit flips in all, and one compile repairs all.
    const weights = join(form!.directory, 'weights.bin');
    const bytes = await fs.readFile(weights);
    await fs.writeFile(weights, Buffer.concat([Buffer.from([bytes.readUInt8(0) ^ 1]), bytes.subarray(1)]));
    expect(await box.download(STARTER, { maxPromptLen: 65 })).toMatchObject({ compiled: true });
    for (const maxPromptLen of [64, 66]) {
      expect(await box.host.load(STARTER, { maxPromptLen })).toMatchObject({ compiled: false });
    }
    await box.host.unload();
    const sizes = (await listCompiled(box.paths, STARTER)).map(({ directory }) => listSizes(directory));
    const once = new Map((await Promise.all(sizes)).flat());
    const { removed } = await box.host.remove(STARTER, { compiledOnly: true });
    expect(removed).toEqual([{ kind: 'compiled', bytes: [...once.values()].reduce((sum, size) => sum + size, 0) }]);
  });

  it('gives way to newer ones of other prompt lengths, but not while it is loaded, also where the home is a link', async () => {
    const box = await testHost(hub);
    const { assayHome } = box.paths.roots;
    await fs.mkdir(`${assayHome}-elsewhere`);
    await fs.symlink(`${assayHome}-elsewhere`, assayHome);
    await box.host.load(STARTER, { maxPromptLen: 100 });
    expect(await box.host.load(STARTER, {})).toMatchObject({ load_ms: 0 });
    expect(box.engine.calls.filter((call) => call.startsWith('load'))).toHaveLength(1);
    for (let maxPromptLen = 101; maxPromptLen < 112; maxPromptLen += 1) await box.download(STARTER, { maxPromptLen });
    const lengths = (await listCompiled(box.paths, STARTER)).map(({ record }) => record.maxPromptLen);
    expect(lengths.sort()).toEqual([100, 103, 104, 105, 106, 107, 108, 109, 110, 111]);
    expect((await fs.readdir(box.paths.compiledModel(STARTER))).filter((name) => name.startsWith('.'))).toEqual([
      '.lock',
    ]);
  });

  it('with one flipped bit in any file is rebuilt', async () => {
    // The measurements of auto differ from run to run.
    const box = await testHost(hub, { precision: 'int8' });
    await box.download(STARTER);
    const [form = ''] = (await fs.readdir(box.paths.compiledModel(STARTER))).filter((name) => !name.startsWith('.'));
    const directory = box.paths.compiled(STARTER, form);
    for (const name of await fs.readdir(directory)) {
      const file = join(directory, name);
      const original = await fs.readFile(file);
      if (original.length === 0) continue;
      const bytes = Buffer.from(original);
      const at = Math.floor(bytes.length / 2);
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      await fs.writeFile(file, bytes);
      expect(await box.download(STARTER), name).toMatchObject({ compiled: true });
      expect(original.equals(await fs.readFile(file)), name).toBe(true);
    }
  });

  it('with a file that cannot be read is rebuilt', async () => {
    const box = await testHost(hub, { precision: 'int8' });
    await box.download(STARTER);
    const [form] = await listCompiled(box.paths, STARTER);
    const file = join(form!.directory, 'weights.bin');
    await fs.rm(file);
    await fs.mkdir(file);
    const { size } = await fs.stat(file);
    const files = form!.record.files.map((one) => (one.name === 'weights.bin' ? { ...one, size } : one));
    await fs.writeFile(join(form!.directory, 'fingerprint.json'), JSON.stringify({ ...form!.record, files }));
    expect(await box.download(STARTER)).toMatchObject({ compiled: true });
    expect((await fs.stat(file)).isFile()).toBe(true);
  });

  it('is not made of damaged weights, and the message names the file and what to do', async () => {
    const box = await testHost(hub);
    await box.download(QWEN);
    await box.host.remove(QWEN, { compiledOnly: true });
    const blobs = await fs.readdir(box.paths.blobs(QWEN));
    const sizes = await Promise.all(blobs.map(async (blob) => (await fs.stat(box.paths.blob(QWEN, blob))).size));
    const largest = box.paths.blob(QWEN, blobs[sizes.indexOf(Math.max(...sizes))]!);
    const bytes = await fs.readFile(largest);
    bytes.writeUInt8(bytes.readUInt8(1000) ^ 1, 1000);
    await fs.writeFile(largest, bytes);
    await expect(box.host.load(QWEN, {})).rejects.toThrow(
      "onnx/model.onnx of acme/qwen3 is damaged on this machine's disk. Fetch it again: assay pull acme/qwen3",
    );
    expect(box.host.active().state).toBe('failed');
    expect((await box.download(QWEN)).bytes).toBe(bytes.length);
    await box.host.load(QWEN, {});
  });

  it('needs disk space for its files, and 64 MiB more', async () => {
    const box = await testHost(hub);
    await box.download(STARTER, { maxPromptLen: 64 });
    const [form] = await listCompiled(box.paths, STARTER);
    const weights = form!.record.files.find(({ name }) => name === 'weights.bin')!.size;
    const spare = 64 * 1024 * 1024;
    const less = box.restarted({ freeBytes: async () => spare + weights / 2 });
    await expect(less.download(STARTER)).rejects.toMatchObject({ code: 'disk_full' });
    expect(await listCompiled(box.paths, STARTER)).toHaveLength(1);
    // The reference in floats, and two forms of which one stays.
    const enough = box.restarted({ freeBytes: async () => spare + 8 * weights });
    expect(await enough.download(STARTER)).toMatchObject({ compiled: true });
  });

  it('needs disk space, says how much, and leaves no part of itself when the disk is full', async () => {
    let free = 1000;
    const box = await testHost(hub, { freeBytes: async () => free });
    await expect(box.download(STARTER)).rejects.toMatchObject({
      code: 'disk_full',
      message: expect.stringMatching(/needs about .* 1\.0 kB free.*ASSAY_HOME/),
    });
    free = 1e9;
    const compiling = gate();
    box.engine.compiling = compiling.promise;
    const download = box.download(STARTER);
    download.catch(() => undefined);
    await expect.poll(() => box.engine.compiles).toBe(2);
    free = 10;
    compiling.reject(new AssayError('engine_failed', 'write failed'));
    await expect(download).rejects.toMatchObject({ code: 'disk_full' });
    expect((await fs.readdir(box.paths.compiledModel(STARTER))).filter((name) => name !== '.lock')).toEqual([]);
    free = 1e9;
    box.engine.compiling = Promise.resolve();
    expect(await box.download(STARTER)).toMatchObject({ compiled: true });
  });
});

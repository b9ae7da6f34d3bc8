import * as fs from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import type { Clock } from '../../lib/clock.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type { DeviceDecision } from '../../lib/host.ts';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import { COMPILER_VERSION } from '../compile/manifest.ts';
import type { Precision } from '../compile/precision.ts';
import type { DevicePlugin } from '../device/resolve-devices.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { CompileProgress } from '../protocol/messages.ts';
import {
  type CompiledModel,
  checkPlainFiles,
  findCompiled,
  publishCompiled,
  removeStale,
  shareFiles,
} from '../store/compiled-store.ts';
import { hashFile } from '../store/digest.ts';
import { diskError, formatBytes, SPARE_BYTES } from '../store/disk-error.ts';
import { type Fingerprint, type SourceFile, sourceFiles, sourceHash } from '../store/fingerprint.ts';
import type { LocalModel } from '../store/hub-cache.ts';
import { lock } from '../store/lock.ts';
import { baseName, join, type StorePaths } from '../store/paths.ts';
import { choosePromptLength, contextLength } from '../store/prompt-length.ts';
import type { EngineProcess } from '../supervisor/engine-process.ts';
import { judge } from './judge-device.ts';

/** Holds the effects and settings that compiling needs. */
export interface CompileContext {
  paths: StorePaths;
  engine: Pick<EngineProcess, 'compile'>;
  clock: Clock;
  log: Logger;
  /** Devices to compile for, best first; the CPU is always the last. */
  devices: readonly Device[];
  /** Tells whether an execution provider or a plugin on this machine may drive a device. */
  drives(device: Device): boolean;
  /**
   * Returns the plugin that drives a device; null for a device of onnxruntime-node. Throws `engine_failed` when nothing
   * drives it.
   */
  plugin(device: Device): Promise<DevicePlugin | null>;
  /** True when the caller named no device: then a device that is slower than the CPU is not used. */
  automatic: boolean;
  /** Form of the compiled weights; `auto`: the best for each device. */
  precision: Precision;
  /** Family of the CPU's kernels (`kernelFamily`). */
  kernels: string;
  /** Version of onnxruntime-node; part of the fingerprint. */
  runtimeVersion: string;
  /** Returns the free bytes on the disk of a directory. */
  freeBytes(directory: string): Promise<number>;
}

export interface EnsureOptions {
  maxPromptLen?: number;
  signal: AbortSignal;
  onProgress(progress: StageProgress): void;
  /** Devices to skip. */
  without?: ReadonlySet<Device>;
  /** Forms of the weights that gave wrong numbers at load. */
  refused?: ReadonlySet<WeightForm>;
  /** Tells whether a directory must stay, because it is loaded or being loaded. */
  inUse(directory: string): boolean;
}

export interface StageProgress {
  stage: 'verifying' | 'compiling';
  bytes: number;
  total: number | null;
  file?: string;
  step?: string;
}

export interface EnsuredModel {
  compiled: CompiledModel;
  /** True when it was compiled by this call. */
  made: boolean;
  /** Plugin that drives its device. */
  plugin?: PluginTarget;
  /** Decisions about the devices that were tried, except those of onnxruntime-node. */
  decisions: readonly DeviceDecision[];
}

/**
 * Returns the compiled form of a model for this machine; compiles it if it is absent, stale or damaged. Tries the
 * devices in order; logs the reason when a compile fails, and tries the next device.
 *
 * @throws AssayError `invalid_value` (max_prompt_len), `engine_failed`, `disk_full`
 */
export async function ensureCompiled(
  context: CompileContext,
  model: LocalModel,
  options: EnsureOptions,
): Promise<EnsuredModel> {
  const { paths, log } = context;
  const maxPromptLen = choosePromptLength(options.maxPromptLen, await contextLength(paths, model));
  const files = await sourceFiles(paths, model);
  const devices = context.devices.filter((device) => !options.without?.has(device));
  const common = {
    source: sourceHash(files),
    runtime: context.runtimeVersion,
    compiler: COMPILER_VERSION,
    dtype: model.files.dtype,
    precision: context.precision,
    maxPromptLen,
  };
  await paths.makeDirectory(paths.compiledModel(model.id));
  const held = await lock(paths.compileLock(model.id), context.clock, options.signal, () =>
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'another process is compiling it' }),
  );
  const decisions: DeviceDecision[] = [];
  try {
    for (const [index, device] of devices.entries()) {
      const next = devices[index + 1];
      try {
        const plugin = await context.plugin(device);
        const identity = plugin ? { plugin: plugin.identity } : {};
        const fingerprint: Fingerprint = { ...common, device, ...identity, ...kernelsFor(context, device) };
        const found = await findCompiled(paths, model.id, fingerprint);
        const known = found && !isRefused(found, options) ? found : null;
        const compiled =
          known ?? (await compile(context, model, files, { fingerprint, plugin: plugin?.target }, options));
        const decision = decide(context, compiled);
        if (decision) decisions.push(decision);
        if (decision?.used === false && next) {
          log.warn({ model: model.id, device, next, reason: decision.reason }, 'the device is not used');
          continue;
        }
        return { compiled, made: known === null, decisions, ...(plugin ? { plugin: plugin.target } : {}) };
      } catch (error) {
        if (!next || options.signal.aborted || !isAssayError(error, 'engine_failed')) throw error;
        decisions.push({ device, used: false, reason: error.message, figures: null });
        log.warn({ model: model.id, device, next, err: error }, 'cannot compile for this device');
      }
    }
    throw new Error('no device to compile for');
  } finally {
    await paths.remove(paths.staging(model.id)).catch(() => undefined);
    held.release();
  }
}

/** Decides whether to use the device of a compiled form; null when it was not measured. */
function decide({ automatic }: CompileContext, { record }: CompiledModel): DeviceDecision | null {
  return record.figures ? judge(record.device, record.figures, { automatic }) : null;
}

/** Returns the kernels if the form was chosen by speed: it suits the CPU that it was measured on. */
function kernelsFor({ precision, kernels }: CompileContext, device: Device): Pick<Fingerprint, 'kernels'> {
  return precision === 'auto' && device === 'CPU' ? { kernels } : {};
}

function isRefused({ record }: CompiledModel, { refused }: EnsureOptions): boolean {
  return record.form !== undefined && (refused?.has(record.form) ?? false);
}

/**
 * Tells whether `ensureCompiled` would use a compiled form for some prompt length, without comparing the source's hash.
 */
export function wouldServe(context: CompileContext, model: LocalModel, fingerprint: Fingerprint): boolean {
  const { runtime, compiler, dtype, precision, kernels, device } = fingerprint;
  return (
    runtime === context.runtimeVersion &&
    compiler === COMPILER_VERSION &&
    dtype === model.files.dtype &&
    precision === context.precision &&
    kernels === kernelsFor(context, device).kernels &&
    context.devices.includes(device)
  );
}

async function compile(
  context: CompileContext,
  model: LocalModel,
  files: readonly SourceFile[],
  { fingerprint, plugin }: { fingerprint: Fingerprint; plugin: PluginTarget | undefined },
  options: EnsureOptions,
): Promise<CompiledModel> {
  const { paths, engine } = context;
  await verifySource(model, files, options);
  const staging = paths.staging(model.id);
  const source = join(staging, 'source');
  const target = join(staging, 'target');
  const full = new AbortController();
  const signal = AbortSignal.any([options.signal, full.signal]);
  let spaceCheck: Promise<void> | undefined;
  try {
    // Files of a compile that was killed.
    await paths.remove(staging);
    for (const directory of [source, target]) await paths.makeDirectory(directory);
    // The compile sees only the chosen variant, even if the repository has several.
    for (const file of files) await fs.symlink(file.real, join(source, baseName(file.path)), 'file');
    const spec = {
      source,
      target,
      device: fingerprint.device,
      precision: context.precision,
      maxPromptLen: fingerprint.maxPromptLen,
      ...(plugin ? { plugin } : {}),
      ...(options.refused ? { refused: [...options.refused] } : {}),
    };
    const onProgress = ({ step, done, total }: CompileProgress): void => {
      // The size of the result is known as soon as its first bytes are written.
      if (step === 'weights')
        spaceCheck ??= checkSpace(context, model, total - done, target).catch((e) => full.abort(e));
      if (step === 'device') {
        const what = done + 1 < total ? `graph ${done + 1} of ${total - 1}` : 'measuring';
        options.onProgress({ stage: 'compiling', step: `${fingerprint.device}: ${what}`, bytes: 0, total: null });
        return;
      }
      // Only weights are counted in bytes.
      options.onProgress({
        stage: 'compiling',
        step,
        ...(step === 'reading' ? { bytes: 0, total: null } : { bytes: done, total }),
      });
    };
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'starting' });
    const report = await engine.compile(spec, { signal, onProgress });
    await spaceCheck;
    signal.throwIfAborted();
    await checkPlainFiles(target);
    for (const [name, path] of Object.entries(model.files.support)) {
      await fs.copyFile(paths.file(model.directory, path), join(target, name));
    }
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'saving' });
    const made = await publishCompiled(paths, model.id, target, { fingerprint, ...report });
    await removeStale(paths, model.id, staging, fingerprint, options.inUse);
    await shareFiles(paths, model.id, staging, made);
    return made;
  } catch (error) {
    signal.throwIfAborted();
    // A full disk in the child is reported as a failed compile.
    if ((await context.freeBytes(paths.compiledRoot()).catch(() => Number.POSITIVE_INFINITY)) < FULL_BYTES) {
      throw diskError(Object.assign(new Error('no space left', { cause: error }), { code: 'ENOSPC' }), 'ASSAY_HOME');
    }
    throw diskError(error, 'ASSAY_HOME');
  }
}

/** Free bytes below which a disk counts as full. */
const FULL_BYTES = 1024 * 1024;

/** Checks the hashes of the source files, so that a damaged file is reported instead of giving damaged answers. */
async function verifySource(model: LocalModel, files: readonly SourceFile[], options: EnsureOptions): Promise<void> {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  let checked = 0;
  for (const file of files) {
    const { signal } = options;
    const onBytes = (bytes: number): void =>
      options.onProgress({ stage: 'verifying', bytes: checked + bytes, total, file: file.path });
    if ((await hashFile(file.real, file.size, file.hash, { signal, onBytes })) !== file.hash) {
      throw new AssayError(
        'engine_failed',
        `${file.path} of ${model.id} is damaged on this machine's disk. Fetch it again: assay pull ${model.id}`,
      );
    }
    checked += file.size;
  }
}

async function checkSpace(context: CompileContext, model: LocalModel, needed: number, target: string): Promise<void> {
  const free = await context.freeBytes(target);
  if (free < needed + SPARE_BYTES) {
    throw new AssayError(
      'disk_full',
      `Compiling ${model.id} needs about ${formatBytes(needed)} more, with ${formatBytes(SPARE_BYTES)} to spare, and the disk of ASSAY_HOME has ${formatBytes(free)} free. Free space (assay list, assay rm) or set ASSAY_HOME to a directory on a larger disk.`,
    );
  }
}

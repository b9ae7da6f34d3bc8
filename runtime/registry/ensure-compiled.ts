import * as fs from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import type { Clock } from '../../lib/clock.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import { formatBytes } from '../../lib/format-bytes.ts';
import type { DeviceDecision } from '../../lib/models/host.ts';
import type { Precision } from '../../lib/schema/precision.ts';
import type { RequestedPrecision } from '../compile/choose-precision.ts';
import { COMPILER_VERSION } from '../compile/manifest.ts';
import type { DevicePlugin } from '../device/resolve-devices.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { CompileProgress } from '../protocol/messages.ts';
import {
  type CompiledModel,
  type CompiledRecord,
  checkPlainFiles,
  findCompiled,
  publishCompiled,
  removeStale,
  shareFiles,
} from '../store/compiled-store.ts';
import { hashFile } from '../store/digest.ts';
import { diskError, SPARE_BYTES } from '../store/disk-error.ts';
import { type Fingerprint, type SourceFile, sourceFiles, sourceHash } from '../store/fingerprint.ts';
import { type LocalModel, linkFile } from '../store/hub-cache.ts';
import { lock } from '../store/lock.ts';
import { inheritedFrom } from '../store/model-files.ts';
import type { StorePaths } from '../store/paths.ts';
import { dirname, join } from '../store/paths.ts';
import { choosePromptLength, statedLengths } from '../store/prompt-length.ts';
import type { Compiles } from '../supervisor/children/compiles.ts';
import { judge } from './judge-device.ts';

/** Holds the services and settings that compiling depends on. */
export interface CompileContext {
  paths: StorePaths;
  compiler: Pick<Compiles, 'compile'>;
  clock: Clock;
  log: Logger;
  /** Devices to compile for, best first. The CPU is always the last. */
  devices: readonly Device[];
  /**
   * Tells whether this machine has an execution provider or a plugin for a device. The device may still fail to run a
   * model.
   */
  drives(device: Device): boolean;
  /**
   * Returns the plugin for a device; null if onnxruntime-node supports the device itself. Throws `engine_failed` if
   * nothing on this machine supports it.
   */
  plugin(device: Device): Promise<DevicePlugin | null>;
  /** True if the user named no device (`--device auto`); a device that is slower than the CPU is then not used. */
  automatic: boolean;
  /** Precision to compile; `auto` chooses the best for each device. */
  precision: RequestedPrecision;
  /** Kernel family of this machine's CPU (`kernelFamily`). */
  kernels: string;
  /** Most threads that may compute a model (`machineThreads`). */
  threads: number;
  /** Version of onnxruntime-node, which is part of the fingerprint of compiled models. */
  runtimeVersion: string;
  /** Returns the number of free bytes on the disk that contains a directory. */
  freeBytes(directory: string): Promise<number>;
}

export interface EnsureOptions {
  maxPromptLen?: number;
  signal: AbortSignal;
  onProgress(progress: StageProgress): void;
  /** Devices not to compile for, because they failed to load a model since the server started. */
  without?: ReadonlySet<Device>;
  /** Precisions not to use, because this model computed wrong logits in them when it was loaded. */
  refused?: ReadonlySet<Precision>;
  /** Tells whether a compiled model's directory must not be deleted, because the model is loaded or being loaded. */
  inUse(directory: string): boolean;
}

interface StageProgress {
  stage: 'verifying' | 'compiling';
  bytes: number;
  total: number | null;
  file?: string;
  step?: string;
}

export interface EnsuredModel {
  compiled: CompiledModel;
  /** True if this call compiled the model, false if it was in the store. */
  made: boolean;
  /** Plugin whose device the model is compiled for; absent if onnxruntime-node supports the device itself. */
  plugin?: PluginTarget;
  /** Decisions about the devices that were measured, or for which the model could not be compiled. */
  decisions: readonly DeviceDecision[];
}

/**
 * Returns the model compiled for the first device, in the order of `context.devices`, that is fit to run it. Compiles
 * the model unless a matching, intact result is in the store. If the compile for a device fails, or its measurements
 * show that the device must not be used, logs the reason and tries the next device.
 *
 * @throws AssayError `invalid_value` if `maxPromptLen` is out of bounds; `engine_failed` if the model's configuration
 *   cannot be read or the compile for the last device fails; `disk_full`, or `internal_error` if `ASSAY_HOME` cannot be
 *   written to; the reason of `options.signal` if it aborts
 */
export async function ensureCompiled(
  context: CompileContext,
  model: LocalModel,
  options: EnsureOptions,
): Promise<EnsuredModel> {
  const { paths, log } = context;
  if (model.refusal) throw new AssayError('engine_failed', `${model.id} cannot run here: ${model.refusal}.`);
  const lengths = await statedLengths(paths, model);
  const files = await sourceFiles(paths, model);
  // Encoder models run on the CPU, which is always the last device.
  const usable = model.contract ? context.devices.slice(-1) : context.devices;
  const devices = usable.filter((device) => !options.without?.has(device));
  const common = {
    source: sourceHash(files),
    runtime: context.runtimeVersion,
    compiler: COMPILER_VERSION,
    dtype: model.files.dtype,
    precision: context.precision,
  };
  await paths.makeDirectory(paths.compiledModel(model.id));
  const held = await lock(paths.compileLock(model.id), context.clock, options.signal, () =>
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'another process is compiling it' }),
  ).catch((error: unknown) => {
    throw diskError(error, 'ASSAY_HOME');
  });
  const decisions: DeviceDecision[] = [];
  try {
    for (const [index, device] of devices.entries()) {
      const next = devices[index + 1];
      try {
        const plugin = await context.plugin(device);
        const identity = plugin ? { plugin: plugin.identity } : {};
        const maxPromptLen = choosePromptLength(options.maxPromptLen, lengths, device);
        const fingerprint: Fingerprint = {
          ...common,
          maxPromptLen,
          device,
          ...identity,
          ...kernelsFor(context, device),
        };
        const found = await findCompiled(paths, model.id, fingerprint);
        const known = found && !isRefused(found, options) && isForThreads(found.record, context) ? found : null;
        const compiled =
          known ?? (await compileIntoStore(context, model, files, { fingerprint, plugin: plugin?.target }, options));
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

/** Decides whether to use the device of a compiled model. Returns null if its compile measured no device. */
function decide({ automatic }: CompileContext, { record }: CompiledModel): DeviceDecision | null {
  return record.figures ? judge(record.device, record.figures, { automatic }) : null;
}

/**
 * Returns the field `kernels` of the fingerprint if the precision is chosen by speed, because the choice then holds
 * only for CPUs of this kernel family; otherwise an empty object.
 */
function kernelsFor({ precision, kernels }: CompileContext, device: Device): Pick<Fingerprint, 'kernels'> {
  return precision === 'auto' && device === 'CPU' ? { kernels } : {};
}

function isRefused({ record }: CompiledModel, { refused }: EnsureOptions): boolean {
  return record.precision !== undefined && (refused?.has(record.precision) ?? false);
}

/**
 * Tells whether a model was compiled for as many threads as this machine has. One for more stays, so that machines with
 * a common store do not compile it in turns.
 */
function isForThreads({ mostThreads }: CompiledRecord, { threads }: CompileContext): boolean {
  return mostThreads === undefined || threads <= mostThreads;
}

/**
 * Tells whether `ensureCompiled` would probably use the compiled model with this record for a request of the same
 * prompt length. Does not compare the source files or the plugin, and does not check whether the precision or the
 * device was refused.
 */
export function wouldServe(context: CompileContext, model: LocalModel, record: CompiledRecord): boolean {
  const { runtime, compiler, dtype, precision, kernels, device } = record.fingerprint;
  return (
    runtime === context.runtimeVersion &&
    compiler === COMPILER_VERSION &&
    dtype === model.files.dtype &&
    precision === context.precision &&
    kernels === kernelsFor(context, device).kernels &&
    context.devices.includes(device) &&
    isForThreads(record, context)
  );
}

/**
 * Verifies a model's source files, compiles them for one device in a child process, and publishes the result in the
 * store.
 *
 * @throws AssayError `engine_failed` if a source file is damaged or the compile fails; `disk_full` as soon as it is
 *   known that the result does not fit on the disk; `internal_error` if `ASSAY_HOME` cannot be written to; the reason
 *   of `options.signal` if it aborts
 */
async function compileIntoStore(
  context: CompileContext,
  model: LocalModel,
  files: readonly SourceFile[],
  { fingerprint, plugin }: { fingerprint: Fingerprint; plugin: PluginTarget | undefined },
  options: EnsureOptions,
): Promise<CompiledModel> {
  const { paths, compiler, log } = context;
  const { base, missesRevision } = model;
  if (base && missesRevision) {
    const fields = { model: model.id, base: base.id, commit: base.commit, wanted: missesRevision };
    log.warn(fields, 'the base model is not at the revision that the adapter names; pull the model to fetch that one');
  }
  await verifySource(model, files, options);
  const staging = paths.staging(model.id);
  const source = join(staging, 'source');
  const target = join(staging, 'target');
  const full = new AbortController();
  const signal = AbortSignal.any([options.signal, full.signal]);
  let spaceCheck: Promise<void> | undefined;
  try {
    // Removes files of an earlier compile that was killed.
    await paths.remove(staging);
    for (const directory of [source, target]) await paths.makeDirectory(directory);
    // The compile sees only the files of the chosen variant, even if the repository has several.
    for (const file of files) {
      const link = paths.file(source, file.place);
      await paths.makeDirectory(dirname(link));
      await linkFile(file.real, link);
    }
    const spec = {
      model: model.id,
      source,
      target,
      device: fingerprint.device,
      precision: context.precision,
      maxPromptLen: fingerprint.maxPromptLen,
      threads: context.threads,
      ...(model.contract ? { contract: model.contract } : {}),
      ...(plugin ? { plugin } : {}),
      ...(options.refused ? { refused: [...options.refused] } : {}),
    };
    const onProgress = ({ step, done, total }: CompileProgress): void => {
      // The size of the result is known once its first bytes are written.
      if (step === 'weights')
        spaceCheck ??= checkSpace(context, model, total - done, target).catch((e) => full.abort(e));
      if (step === 'device') {
        const what = done + 1 < total ? `graph ${done + 1} of ${total - 1}` : 'measuring';
        options.onProgress({ stage: 'compiling', step: `${fingerprint.device}: ${what}`, bytes: 0, total: null });
        return;
      }
      // Steps other than `reading` count bytes of weights.
      options.onProgress({
        stage: 'compiling',
        step,
        ...(step === 'reading' ? { bytes: 0, total: null } : { bytes: done, total }),
      });
    };
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'starting' });
    const report = await compiler.compile(spec, { signal, onProgress });
    await spaceCheck;
    signal.throwIfAborted();
    await checkPlainFiles(target);
    const texts = Object.entries(model.files.support).map(([name, path]) => [name, paths.file(model.directory, path)]);
    const config = base?.files.support['config.json'];
    if (base && config && !('config.json' in model.files.support)) {
      texts.push(['config.json', paths.file(base.directory, config)]);
    }
    for (const [name, path] of base ? inheritedFrom(base.files, model.files) : []) {
      texts.push([name, paths.file(base?.directory ?? '', path)]);
    }
    for (const [name = '', file = ''] of texts) await fs.copyFile(file, join(target, name));
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'saving' });
    const made = await publishCompiled(paths, model.id, target, { fingerprint, ...report });
    await removeStale(paths, model.id, staging, fingerprint, options.inUse);
    await shareFiles(paths, model.id, staging, made);
    return made;
  } catch (error) {
    signal.throwIfAborted();
    // The child process reports a full disk as a failed compile.
    if ((await context.freeBytes(paths.compiledRoot()).catch(() => Number.POSITIVE_INFINITY)) < FULL_BYTES) {
      throw diskError(Object.assign(new Error('no space left', { cause: error }), { code: 'ENOSPC' }), 'ASSAY_HOME');
    }
    throw diskError(error, 'ASSAY_HOME');
  }
}

/** Free bytes of a disk below which it counts as full. */
const FULL_BYTES = 1024 * 1024;

async function checkSpace(context: CompileContext, model: LocalModel, needed: number, target: string): Promise<void> {
  const free = await context.freeBytes(target);
  if (free < needed + SPARE_BYTES) {
    throw new AssayError(
      'disk_full',
      `Compiling ${model.id} needs about ${formatBytes(needed)} more, with ${formatBytes(SPARE_BYTES)} to spare, and the disk of ASSAY_HOME has ${formatBytes(free)} free. Free space (assay list, assay rm) or set ASSAY_HOME to a directory on a larger disk.`,
    );
  }
}

/**
 * Checks the hashes of a model's source files, so that a damaged file is reported instead of causing wrong answers.
 * Throws `engine_failed` if one does not match, the file system's error if a file cannot be read, and the reason of
 * `signal` if it aborts.
 */
async function verifySource(
  model: LocalModel,
  files: readonly SourceFile[],
  { signal, onProgress }: Pick<EnsureOptions, 'signal' | 'onProgress'>,
): Promise<void> {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  let checked = 0;
  for (const file of files) {
    const onBytes = (bytes: number): void =>
      onProgress({ stage: 'verifying', bytes: checked + bytes, total, file: file.path });
    if ((await hashFile(file.real, file.size, file.hash, { signal, onBytes })) !== file.hash) {
      throw new AssayError(
        'engine_failed',
        `${file.path} of ${model.id} is damaged on this machine's disk. Fetch it again: assay pull ${model.id}`,
      );
    }
    checked += file.size;
  }
}

import type { Device } from '../../lib/backend.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type { DeviceDecision } from '../../lib/models/host.ts';
import { COMPILER_VERSION } from '../compile/manifest.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import { type CompiledModel, findCompiled } from '../store/compiled-store.ts';
import { diskError } from '../store/disk-error.ts';
import { type Fingerprint, sourceFiles, sourceHash } from '../store/fingerprint.ts';
import type { LocalModel } from '../store/hub-cache.ts';
import { lock } from '../store/lock.ts';
import { choosePromptLength, statedLengths } from '../store/prompt-length.ts';
import type { CompileContext, EnsureOptions } from './compile-context.ts';
import { compileIntoStore } from './compile-model.ts';
import { judge } from './judge-device.ts';

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
        const known = found && !isRefused(found, options) ? found : null;
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
 * Tells whether `ensureCompiled` would probably use a compiled model with this fingerprint for a request of the same
 * prompt length. Does not compare the source files or the plugin, and does not check whether the precision or the
 * device was refused.
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

import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { AssayError } from '../../lib/errors.ts';
import { refusal } from '../../lib/models/refused-precision.ts';
import type { Precision } from '../../lib/schema/precision.ts';
import { errorText } from '../compile/choose-precision.ts';
import { type Manifest, readManifest, readReference } from '../compile/manifest.ts';
import { loadFailureReason } from '../ort-plugin/open-device.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { KvShape } from './cache/kv-shape.ts';
import type { Forward } from './forward/forward.ts';
import { addsInPieces, PackedForward } from './forward/packed-forward.ts';
import { PlainForward } from './forward/plain-forward.ts';
import { floats } from './forward/state-feeds.ts';
import { StaticForward } from './forward/static/static-forward.ts';
import { openStatic } from './forward/static/static-sessions.ts';
import {
  checkPacking,
  findIndependence,
  floatProductsDependOnRows,
  int8ProductsSaturate,
  referenceError,
  valuesAreIndependent,
} from './self-check/self-check.ts';

export interface OpenOptions {
  /** Threads of one run. Default: one for each physical core. */
  threads?: number;
  /**
   * onnxruntime execution providers, by default the CPU; ignored for a model with static graphs. Name only one: whether
   * to fall back to another is up to the caller.
   */
  providers?: readonly InferenceSession.ExecutionProviderConfig[];
  /** Device and plugin for a model with static graphs. Default: the CPU. */
  plugin?: PluginTarget;
}

/** Holds a compiled model in memory. */
export interface EngineModel {
  manifest: Manifest;
  forward: Forward;
  /** True if this machine computes the branches of a job with the same bits alone and in company. */
  independent: boolean;
  close(): Promise<void>;
}

/**
 * Loads a compiled model from its folder. Throws `engine_failed` if its manifest or reference is missing or damaged, if
 * the graphs do not load (the cause is onnxruntime's error), or if this machine computes wrong logits.
 */
export async function openModel(
  folder: string,
  { threads, providers = ['cpu'], plugin }: OpenOptions = {},
): Promise<EngineModel> {
  const manifest = readManifest(folder);
  const options = { executionProviders: providers, ...(await sessionOptions(threads, { alike: true })) };
  const { forward, close } = await openForward(folder, manifest, options, plugin).catch((cause: unknown) => {
    if (cause instanceof AssayError) throw cause;
    throw new AssayError('engine_failed', loadFailure(manifest, cause), { cause });
  });
  try {
    const shape = kvShape(manifest);
    await checkPacking(forward, shape);
    await checkNumbers(folder, manifest, forward);
    const independent =
      (await findIndependence(forward, shape)) && (await valuesAreIndependent(options, shape, manifest.threads));
    return { manifest, forward, independent, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Says that a model does not load, and what to do. */
function loadFailure({ device }: Manifest, cause: unknown): string {
  const again = "delete the model's compiled files (assay rm --compiled-only <model>) and load it again.";
  return device === 'CPU'
    ? `The compiled model does not load: ${again} If it fails again, onnxruntime probably has no kernels for it on the CPU: take another model.`
    : `The model does not load on a ${device} of this machine: ${loadFailureReason(cause)}. See what is missing: assay doctor. If that shows a ${device} that works, ${again}`;
}

async function openForward(
  folder: string,
  manifest: Manifest,
  options: InferenceSession.SessionOptions,
  plugin: PluginTarget | undefined,
): Promise<Pick<EngineModel, 'forward' | 'close'>> {
  if (manifest.static) {
    const threads = options.intraOpNumThreads;
    const lookup = { ...options, executionProviders: ['cpu'] };
    const { sessions, close } = await openStatic(folder, manifest, manifest.static, {
      lookup,
      ...(plugin ? { plugin } : {}),
      ...(threads ? { threads } : {}),
    });
    return { forward: new StaticForward(sessions, manifest, manifest.static), close };
  }
  // Without it, the operator adds over blocks of cells of the CPU's second cache, and the last one in another order.
  if (manifest.path === 'packed') process.env.ORT_GQA_DISABLE_FLASH_ATTENTION = addsInPieces(manifest.kv) ? '1' : '0';
  const session = await InferenceSession.create(join(folder, manifest.graph), options);
  if (manifest.path === 'plain')
    return { forward: new PlainForward(session, manifest), close: () => session.release() };
  const alone = manifest.alone && (await InferenceSession.create(join(folder, manifest.alone.graph), options));
  return {
    forward: new PackedForward(session, manifest, alone),
    async close() {
      await session.release();
      await alone?.release();
    },
  };
}

/**
 * Compares the model's logits with the 32-bit ones that its compile stored, because the kernels of another CPU or
 * device may compute wrong ones silently. Throws `wrongNumbers` if the error exceeds the limit of the manifest.
 */
async function checkNumbers(folder: string, manifest: Manifest, forward: Forward): Promise<void> {
  const { precision, choice } = manifest;
  if (choice.errorLimit === null) return;
  const error = await referenceError(forward, kvShape(manifest), readReference(folder));
  // Written so that NaN fails too.
  if (!(error <= choice.errorLimit)) throw wrongNumbers(precision, error, choice.errorLimit);
}

/** Returns the shape of a model's KV cache and states, from its manifest. */
export function kvShape({ kv, states, static: graphs }: Manifest): KvShape {
  const capacities = graphs && [...new Set(graphs.bodies.map(({ past }) => past))].sort((a, b) => a - b);
  return {
    layers: kv,
    ...(capacities ? { capacities } : {}),
    ...(graphs?.kvType === 'float16' ? { half: true } : {}),
    ...(states ? { states: states.map(({ dims }) => floats(dims)) } : {}),
  };
}

/**
 * Returns the onnxruntime session options that fit this machine, for any execution provider.
 *
 * @param threads threads of one run; absent: one for each physical core
 * @param alike true if rows must have the same bits alone and beside others
 */
export async function sessionOptions(
  threads?: number,
  { alike = false }: { alike?: boolean } = {},
): Promise<InferenceSession.SessionOptions> {
  // With `x64quantprecision`, MatMuls use unsigned weights, whose kernels are exact on every CPU. The kernels for
  // signed weights are faster (0.6 of the time with VNNI), but not exact on every CPU.
  const x64quantprecision = (await int8ProductsSaturate()) ? '1' : '0';
  // Also turns off KleidiAI's kernels for 4 bits, which is why it stays on everywhere else.
  const disable_kleidiai = alike && (await floatProductsDependOnRows()) ? '1' : '0';
  return {
    logSeverityLevel: 3,
    // Input shapes differ in every run, so cached memory plans would only accumulate.
    enableMemPattern: false,
    // Threads spin for 50 microseconds, which bridges the time between two operators of a run, and then sleep. Sleeping
    // threads cost nothing between runs, and save a quarter of the time when other processes compute too.
    extra: {
      session: { x64quantprecision, intra_op: { allow_spinning: '1', spin_duration_us: '50' } },
      mlas: { disable_kleidiai },
    },
    ...(threads ? { intraOpNumThreads: threads } : {}),
  };
}

/**
 * Returns the `engine_failed` error for a precision whose logits are wrong on this machine. Its `cause` names the
 * precision, for `refusedPrecision`.
 *
 * @param error measured `logitError`
 * @param limit largest accepted `logitError`
 */
export function wrongNumbers(precision: Precision, error: number, limit: number): AssayError {
  return new AssayError(
    'engine_failed',
    `This machine computes wrong numbers in ${precision}: ${errorText(error)}, and the limit is ${(100 * limit).toFixed(0)}%. Start with --precision auto, which chooses an accurate precision.`,
    { cause: refusal(precision) },
  );
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { AssayError } from '../../lib/errors.ts';
import { COUNTED_LIMITS } from '../../lib/limits/request-size.ts';
import { prepareVocabulary } from '../../lib/tasks/task-grammar.ts';
import { KERNEL_BLOCKS, kernelFamily } from '../compile/kernels.ts';
import {
  type EncoderManifest,
  type Manifest,
  readEncoderManifest,
  readEncoderReference,
  readManifest,
} from '../compile/manifest.ts';
import type { ContractText, DecisionContract } from '../contracts/contract.ts';
import { contractText } from '../contracts/contract-text.ts';
import { contractInFolder } from '../contracts/read-files.ts';
import { providersOf } from '../device/device-table.ts';
import { availableMemory } from '../device/hardware.ts';
import { openEncoderGraphs } from '../encoder/encoder-graphs.ts';
import { adapterInFolder } from '../encoder/open-adapter.ts';
import { probeLogits } from '../encoder/probe.ts';
import type { KvShape } from '../engine/cache/kv-shape.ts';
import { SavedPrefixes } from '../engine/cache/saved-prefixes.ts';
import { prefixBytes } from '../engine/cache/sequence.ts';
import { Engine } from '../engine/engine.ts';
import type { Forward } from '../engine/forward/forward.ts';
import { type EngineModel, kvShape, openModel, sessionOptions, wrongNumbers } from '../engine/model.ts';
import { logitError } from '../engine/self-check/self-check.ts';
import type { MediaFamily } from '../media/families/family.ts';
import { readMediaFamily } from '../media/families/read-family.ts';
import { deepstackNames } from '../onnx/rewrites/fuse-embeddings.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { LoadSpec, Phase } from '../protocol/messages.ts';
import { judgeFolder } from '../store/judge-folder.ts';
import { SHORT_PROMPT_LEN } from '../store/prompt-length.ts';
import { readModelText } from '../text/model-files.ts';
import { createTextModel } from '../text/text-model.ts';
import { EncoderModel } from './encoder-model.ts';
import { LoadedModel } from './loaded-model.ts';
import { MediaEncoder } from './media-encoder.ts';
import type { ServedModel } from './serve.ts';
import type { LoadedContract } from './task-job.ts';

/** Number of full-length prompts that fit in the default prefix cache. */
const KEPT_PROMPTS = 4;
/** Largest fraction of the memory for the default prefix cache, and so for one prompt of the default length. */
const KV_SHARE = 1 / 4;

/**
 * Returns the default prompt length of a model that is compiled for `most` tokens, on a machine with `memory` bytes:
 * the KV of one prompt takes at most `KV_SHARE` of them, or the length is `SHORT_PROMPT_LEN`.
 */
export function promptLengthFor(memory: number, kv: KvShape, most: number): number {
  let length = SHORT_PROMPT_LEN;
  while (length < most && prefixBytes(kv, Math.min(2 * length, most)) <= memory * KV_SHARE) length *= 2;
  return Math.min(length, most);
}

/**
 * Loads a compiled model with its tokenizer, chat template and media encoder. Runs in the engine process. Throws
 * `engine_failed` if the model does not load, computes wrong logits, or has text files that cannot be used.
 *
 * @param onPhase receives `text` before each part of the work on tokenizer, template and grammars
 */
export async function loadModel(spec: LoadSpec, onPhase: (phase: Phase) => void): Promise<ServedModel> {
  const { model, dir, plugin, threads, maxPromptLen: wanted } = spec;
  const encoder = readEncoderManifest(dir);
  if (encoder) return loadEncoder(spec, encoder, onPhase);
  const { manifest, forward, independent } = await openOnDevice(dir, plugin, threads);
  const { contextLength, device, vocabSize } = manifest;
  const kv = kvShape(manifest);
  const memory = availableMemory();
  const most = manifest.maxPromptLen;
  const maxPromptLen = Math.min(wanted ?? promptLengthFor(memory, kv, most), most);
  const reads = await openMedia(dir, { ...manifest, maxPromptLen }, threads);
  onPhase('text');
  const files = await readModelText(dir);
  onPhase('text');
  const found = await contractInFolder(dir, model);
  const narrow = !found.writes && manifest.readout !== undefined;
  const mostTokens = COUNTED_LIMITS * maxPromptLen;
  const text = { ...createTextModel(files, { mostTokens, ...(narrow ? {} : { vocabSize }) }), ...reads };
  onPhase('text');
  const loaded: LoadedContract = found.writes
    ? { contract: found, text }
    : openDecisions(found, contractText(text, mostTokens), { dir, narrow });
  if (found.writes) prepareVocabulary(text.vocabulary);
  const kvBytes = Math.min(KEPT_PROMPTS * prefixBytes(kv, maxPromptLen), memory * KV_SHARE);
  const limits = { draftRows: draftRows(manifest) };
  const { saved: kept } = spec;
  const onFailed = (cause: unknown) =>
    process.emitWarning(`A prompt could not be saved in --cache-dir; assay_prefix_save_failures counts more: ${cause}`);
  const saved = kept && new SavedPrefixes({ ...kept, key: Buffer.from(kept.key, 'hex'), onFailed }, kv);
  const dependence = (found.writes ? null : found.dependence) ?? dependenceOf(manifest, independent);
  const engine = new Engine({
    forward,
    kv,
    maxPromptLen,
    contextLength,
    kvBytes,
    limits,
    ...(saved ? { saved } : {}),
    onBatchFailed: (cause) =>
      process.emitWarning(`A run of several requests failed and is repeated one at a time: ${cause}`),
  });
  return new LoadedModel({
    model,
    device,
    maxPromptLen,
    contextLength,
    text,
    engine,
    dependence,
    loaded,
    media: reads.media,
  });
}

/** Loads a compiled encoder model. Throws `engine_failed` if it computes wrong logits on this machine. */
async function loadEncoder(
  { model, dir, threads, windows = false, maxPromptLen: wanted }: LoadSpec,
  manifest: EncoderManifest,
  onPhase: (phase: Phase) => void,
): Promise<ServedModel> {
  onPhase('text');
  const { precision, choice } = manifest;
  const contract = manifest.contract ?? (await contractInFolder(dir, model));
  if ('writes' in contract) throw new Error('the files of a decision model name its contract');
  const maxPromptLen = Math.min(wanted ?? manifest.maxPromptLen, manifest.maxPromptLen);
  const { adapter, info, pad } = await adapterInFolder(dir, contract, new Set(Object.keys(manifest.graphs)));
  onPhase('open');
  const graphs = await openEncoderGraphs(dir, manifest, { pad, threads });
  if (choice.errorLimit !== null) {
    const error = logitError(readEncoderReference(dir), await probeLogits(adapter, graphs));
    // Written so that NaN fails too.
    if (!(error <= choice.errorLimit)) throw wrongNumbers(precision, error, choice.errorLimit);
  }
  return new EncoderModel({ model, contract: info, adapter, graphs, maxPromptLen, windows });
}

/**
 * Opens the model's encoder for images or audio, or returns the reason why it cannot be used; returns neither for a
 * text-only model.
 */
async function openMedia(
  dir: string,
  { media, maxPromptLen }: Manifest,
  threads: number | undefined,
): Promise<{ media?: MediaEncoder; mediaRefusal?: string }> {
  const hasEncoder = media !== undefined && existsSync(join(dir, media.encoder));
  const family = hasEncoder ? await readMediaFamily(dir, maxPromptLen) : null;
  if (!hasEncoder || !family) {
    const { mediaRefusal } = await judgeFolder(dir);
    return mediaRefusal ? { mediaRefusal } : {};
  }
  const opened = await openMediaEncoder(dir, media, family, threads);
  return typeof opened === 'string' ? { mediaRefusal: opened } : { media: opened };
}

/**
 * Opens the model with the first execution provider of its device that accepts it. Throws the last provider's error if
 * none does.
 */
async function openOnDevice(
  dir: string,
  plugin: PluginTarget | undefined,
  threads: number | undefined,
): Promise<EngineModel> {
  if (plugin) {
    const model = await openModel(dir, { plugin, ...(threads ? { threads } : {}) });
    return { ...model, forward: endingOnFailure(model.forward) };
  }
  let failure: unknown;
  for (const provider of providersOf(readManifest(dir).device)) {
    try {
      return await openModel(dir, { providers: [provider], ...(threads ? { threads } : {}) });
    } catch (error) {
      failure = error;
    }
  }
  throw (
    failure ??
    new AssayError(
      'engine_failed',
      'The model was compiled for a device that this machine does not have. Start the server with another --device.',
    )
  );
}

/** Milliseconds from a failed run to the exit of the process, which the failed request needs to receive its error. */
const EXIT_DELAY_MS = 200;

/**
 * Wraps a forward pass and ends the process soon after a run fails on a device: open sessions do not recover from a
 * driver that was reset or a device that is gone. The server then starts a new process, which finds the device again or
 * reports that it is gone.
 */
function endingOnFailure(forward: Forward): Forward {
  return {
    vocabSize: forward.vocabSize,
    slots: forward.slots,
    apart: forward.apart ?? false,
    async run(batch) {
      try {
        return await forward.run(batch);
      } catch (error) {
        setTimeout(() => process.exit(1), EXIT_DELAY_MS);
        throw error;
      }
    },
  };
}

/**
 * Returns the reason why an answer may depend on what runs beside it; null if it does not.
 *
 * @param independent true if the model computed a branch with the same bits alone and in company
 */
export function dependenceOf(
  { device, path, branchMasks, experts }: Pick<Manifest, 'device' | 'path' | 'branchMasks' | 'experts'>,
  independent: boolean,
  kernels = kernelFamily(),
): string | null {
  if (device !== 'CPU' || path !== 'packed')
    return `it was not measured on this ${device} for graphs of the kind ${path}`;
  if (branchMasks === undefined)
    return 'tasks run side by side, because the attention of the model has sinks; others change the order in which it adds numbers';
  if (experts)
    return 'an expert of the model computes all tokens of a run that choose it together, and few by another kernel';
  if (!independent) return 'a test at the load computed a task with other bits in company than alone';
  return KERNEL_BLOCKS.has(kernels) ? null : `it was not measured with the kernels of this CPU (${kernels})`;
}

/**
 * Maximum rows of logits in a run with drafted tokens. One chat with a full draft uses 8 of them; the rest is for
 * drafts of jobs beside it.
 */
const DRAFT_ROWS = 16;

/**
 * CPU kernel families with which drafts were measured to save time without changing any answer (docs/engine.md,
 * "Drafts").
 */
const MEASURED_KERNELS: ReadonlySet<string> = new Set(['AVX-512 VNNI']);

/**
 * Returns the maximum number of rows of logits in a run with drafted tokens (`Limits.draftRows`); 0 for no drafts.
 * Models in 4 bits, and in 8 bits without VNNI, get none: there a run of one token uses other kernels than a run of
 * several, so drafts would change near-ties. Kernels without a measurement get none either.
 */
export function draftRows(
  { device, precision }: Pick<Manifest, 'device' | 'precision'>,
  kernels = kernelFamily(),
): number {
  return device === 'CPU' && precision === 'int8' && MEASURED_KERNELS.has(kernels) ? DRAFT_ROWS : 0;
}

/** Advice at the end of the reasons why an encoder cannot be used. */
const LOAD = 'Load other files of the model.';

/**
 * Opens the encoder of a compiled model. If its files do not fit the model, returns the error message for requests with
 * media instead. Throws onnxruntime's error if the encoder does not load.
 *
 * @param dir folder of the compiled model
 * @param threads threads of onnxruntime; undefined: its default
 */
export async function openMediaEncoder(
  dir: string,
  { encoder, width, parts }: NonNullable<Manifest['media']>,
  family: MediaFamily,
  threads: number | undefined,
): Promise<MediaEncoder | string> {
  const options = { ...(await sessionOptions(threads)), executionProviders: ['cpu'] };
  const session = await InferenceSession.create(join(dir, encoder), options);
  const refusal = whyUnusable(session, family, parts);
  if (!refusal) return new MediaEncoder(family, session, width);
  await session.release();
  return refusal;
}

/**
 * Returns the reason why an encoder does not fit its family or the decoder; null if it fits.
 *
 * @param parts number of vectors that the decoder takes for each token: the encoder's output and its deepstack features
 */
function whyUnusable({ inputNames, outputNames }: InferenceSession, family: MediaFamily, parts: number): string | null {
  const unknown = inputNames.find((name) => !family.inputNames.includes(name));
  if (unknown)
    return `These files of the model have an encoder with the input "${unknown}", which is not known. ${LOAD}`;
  const given = deepstackNames(outputNames).length;
  const needed = family.kind === 'image' && family.deepstack ? Math.max(1, parts - 1) : 0;
  if (given === needed && parts === needed + 1) return null;
  return `These files of the model leave out its deepstack features, without which it sees little. ${LOAD}`;
}

/** Binds the contract of a decision model to its text. */
function openDecisions(
  contract: DecisionContract,
  text: ContractText,
  { dir, narrow }: { dir: string; narrow: boolean },
): LoadedContract {
  return { contract, text, open: contract.open(text, dir), narrow };
}

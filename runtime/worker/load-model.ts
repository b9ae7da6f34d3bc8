import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import { prepareVocabulary } from '../../lib/tasks/task-grammar.ts';
import { type EncoderManifest, readEncoderManifest, readEncoderReference } from '../compile/encoder-manifest.ts';
import { type Manifest, readManifest } from '../compile/manifest.ts';
import { contractText } from '../contracts/contract-text.ts';
import { contractInFolder } from '../contracts/read-files.ts';
import { availableMemory } from '../device/available-memory.ts';
import { providersOf } from '../device/device-table.ts';
import { openEncoderGraphs } from '../encoder/encoder-graphs.ts';
import { createEncoderTokenizer } from '../encoder/encoder-tokenizer.ts';
import { openAdapter } from '../encoder/open-adapter.ts';
import { probeLogits } from '../encoder/probe.ts';
import { type KvShape, prefixBytes } from '../engine/cache/sequence.ts';
import { Engine } from '../engine/engine.ts';
import type { Forward } from '../engine/forward/forward.ts';
import { kvShape, type Model, openModel } from '../engine/model.ts';
import { logitError } from '../engine/self-check/logit-error.ts';
import { wrongNumbers } from '../engine/self-check/wrong-numbers.ts';
import { readMediaFamily } from '../media/families/read-family.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { LoadSpec, Phase } from '../protocol/messages.ts';
import { judgeFolder } from '../store/judge-folder.ts';
import { SHORT_PROMPT_LEN } from '../store/prompt-length.ts';
import { readModelText } from '../text/model-files.ts';
import { COUNTED_LIMITS } from '../text/prompt.ts';
import { createTextModel } from '../text/text-model.ts';
import { draftRows } from './draft-rows.ts';
import { EncoderModel } from './encoder-model.ts';
import { LoadedModel } from './loaded-model.ts';
import type { MediaEncoder } from './media-encoder.ts';
import { openMediaEncoder } from './open-media-encoder.ts';
import type { ServedModel } from './serve.ts';

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
  const { model, dir, plugin, threads, prefixCacheBytes, maxPromptLen: wanted } = spec;
  const encoder = readEncoderManifest(dir);
  if (encoder) return loadEncoder(spec, encoder, onPhase);
  const { manifest, forward } = await openOnDevice(dir, plugin, threads);
  const { contextLength, device, vocabSize } = manifest;
  const kv = kvShape(manifest);
  const memory = availableMemory();
  const most = manifest.maxPromptLen;
  const maxPromptLen = Math.min(wanted ?? promptLengthFor(memory, kv, most), most);
  const media = await openMedia(dir, { ...manifest, maxPromptLen }, threads);
  onPhase('text');
  const files = await readModelText(dir);
  onPhase('text');
  const found = await contractInFolder(dir, model);
  const narrow = found !== null && manifest.readout !== undefined;
  const mostTokens = COUNTED_LIMITS * maxPromptLen;
  const text = createTextModel(files, { mostTokens, ...(narrow ? {} : { vocabSize }) });
  onPhase('text');
  const decisions = found && {
    contract: found,
    open: found.open(contractText(text, mostTokens), dir),
    narrow,
  };
  if (!decisions) prepareVocabulary(text.vocabulary);
  const kvBytes = prefixCacheBytes ?? Math.min(KEPT_PROMPTS * prefixBytes(kv, maxPromptLen), memory * KV_SHARE);
  const limits = { draftRows: draftRows(manifest) };
  const engine = new Engine({ forward, kv, maxPromptLen, contextLength, kvBytes, limits });
  return new LoadedModel({
    model,
    device,
    maxPromptLen,
    contextLength,
    text,
    engine,
    ...(decisions ? { decisions } : {}),
    ...media,
  });
}

/** Loads a compiled encoder model. Throws `engine_failed` if it computes wrong logits on this machine. */
async function loadEncoder(
  { model, dir, threads, windows = false, maxPromptLen: wanted }: LoadSpec,
  manifest: EncoderManifest,
  onPhase: (phase: Phase) => void,
): Promise<ServedModel> {
  onPhase('text');
  const tokenizer = createEncoderTokenizer(await readModelText(dir));
  const { contract, form, choice } = manifest;
  const maxPromptLen = Math.min(wanted ?? manifest.maxPromptLen, manifest.maxPromptLen);
  const adapter = openAdapter(contract, tokenizer, new Set(Object.keys(manifest.graphs)));
  onPhase('open');
  const graphs = await openEncoderGraphs(dir, manifest, { pad: tokenizer.special.pad, threads });
  if (choice.errorLimit !== null) {
    const error = logitError(readEncoderReference(dir), await probeLogits(adapter, graphs));
    // Written so that NaN fails too.
    if (!(error <= choice.errorLimit)) throw wrongNumbers(form, error, choice.errorLimit);
  }
  return new EncoderModel({ model, contract, adapter, graphs, maxPromptLen, windows });
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
): Promise<Model> {
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

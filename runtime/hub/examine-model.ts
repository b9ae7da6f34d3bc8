import type { Device } from '../../lib/backend.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelContract } from '../../lib/schema/model-list.ts';
import type { BaseModelId } from '../contracts/adapter.ts';
import { contractInfo } from '../contracts/encoder-contracts.ts';
import { readTorchFile } from '../contracts/torch-file.ts';
import { CONFIG_BOUNDS } from '../store/bounded-file.ts';
import type { Dtype } from '../store/dtypes.ts';
import { type ModelFiles, pathsOf, type SelectOptions, withEncoderFor } from '../store/model-files.ts';
import { SHORT_PROMPT_LEN } from '../store/prompt-length.ts';
import { type HubListing, listModelFiles } from './hub-client.ts';
import { HubRefusal, hubError } from './hub-error.ts';
import { chunksOf, hubFetch } from './hub-fetch.ts';
import { judgeRepository } from './judge-repository.ts';
import { parseResponse } from './metadata.ts';
import type { HubAccess } from './pull-context.ts';

/** Describes what is known about a repository before its weights are downloaded. */
export interface ModelExamination {
  model: ModelId;
  commit: string;
  /** Reason why the model cannot run here, and what to try instead; null if no reason is known. */
  refusal: string | null;
  /**
   * Error message for requests with images or audio, for a model whose media are known not to work here; otherwise
   * null.
   */
  mediaRefusal: string | null;
  /** Names how the model is asked; null if that is not known. */
  contract: ModelContract | null;
  /** Model in another repository that this one's adapter changes; absent for any other. */
  base?: ModelId;
  /** Variant that would be downloaded; null if the repository has no usable model. */
  chosen: {
    layout: ModelFiles['layout'];
    dtype: Dtype | null;
    graph: string;
    /** `packed` if the engine can certainly pack branches; null if that depends on the graph. */
    path: 'packed' | null;
    downloadBytes: number;
    /**
     * Estimated bytes of memory, with weights in 8 bits and the KV cache of one prompt of the default length; null if
     * unknown.
     */
    memoryBytes: number | null;
  } | null;
}

/** Average bytes per weight in files of each number format. Checkpoints have 16 bits, with few exceptions. */
const WEIGHT_BYTES: Readonly<Record<Dtype, number>> = { q4f16: 0.55, q4: 0.6, int8: 1, q8: 1, fp16: 2, fp32: 4 };
const ANSWER_MS = 30_000;

/**
 * Examines a model on the hub before its weights are downloaded: selects the files for a device, estimates the memory,
 * and tells whether the model can run here. Downloads only the list of files and the configuration, a few kilobytes.
 *
 * @throws AssayError `model_not_found` if the hub does not know the model; `model_not_allowed` if the token may not
 *   read it; `hub_unreachable` if the hub gives no valid answer or `HF_HUB_OFFLINE` is set; the reason of
 *   `options.signal` if it aborts
 */
export async function examineModel(
  hub: HubAccess,
  model: ModelId,
  options: SelectOptions & { revision?: string; signal: AbortSignal },
): Promise<ModelExamination> {
  const { signal } = options;
  const listing = await listModelFiles(hub, model, options.revision ?? 'main', { signal, listingMs: ANSWER_MS });
  const { commit } = listing;
  const names = new Set(listing.files.map(({ path }) => path));
  const verdict = await judgeRepository(model, listing, options, async (path) =>
    names.has(path) ? readJson(hub, model, listing, path, signal) : undefined,
  );
  const { selection, causal, base, reads, mediaRefusal, kvBytes } = verdict;
  if ('missing' in selection) {
    return {
      model,
      commit,
      refusal: `it has no model that this engine can read. ${selection.missing}`,
      mediaRefusal: null,
      contract: null,
      chosen: null,
    };
  }
  const { files } = selection;
  const { layout, adapter, data } = files;
  const wanted = new Set(pathsOf(withEncoderFor(reads, files)));
  const bytesOf = (paths: ReadonlySet<string>) =>
    listing.files.reduce((sum, { path, size }) => sum + (paths.has(path) ? size : 0), 0);
  const format = layout === 'checkpoint' ? 'fp16' : files.dtype;
  const weights = format && bytesOf(new Set([files.graph, ...data])) / WEIGHT_BYTES[format];
  const below = base && (await examineBase(hub, base, options));
  return {
    model,
    commit,
    refusal: verdict.refusal ?? below?.refusal ?? null,
    mediaRefusal,
    contract: verdict.contract ? contractInfo(verdict.contract) : (causal?.info ?? null),
    ...(below ? { base: below.model } : {}),
    chosen: {
      layout: files.layout,
      dtype: files.dtype,
      graph: files.graph,
      path: layout === 'checkpoint' || (files.layout === 'genai' && !files.parts) ? 'packed' : null,
      downloadBytes: bytesOf(wanted) + (below?.chosen?.downloadBytes ?? 0),
      memoryBytes: adapter
        ? (below?.chosen?.memoryBytes ?? null)
        : weights && (verdict.contract || kvBytes)
          ? Math.round(weights + (kvBytes ?? 0) * SHORT_PROMPT_LEN)
          : null,
    },
  };
}

/** Examines the base model of an adapter, as a pull would fetch it. */
async function examineBase(
  hub: HubAccess,
  { model, revision }: BaseModelId,
  { device, signal }: { device: Device; signal: AbortSignal },
): Promise<ModelExamination> {
  const options = { device, signal, base: true };
  if (revision === null) return examineModel(hub, model, options);
  return examineModel(hub, model, { ...options, revision }).catch((error: unknown) => {
    if (!isAssayError(error, 'model_not_found')) throw error;
    return examineModel(hub, model, options);
  });
}

/**
 * Downloads and parses a small JSON file or `head.pt` of a repository. Returns undefined if it is larger than
 * `CONFIG_BOUNDS`, has too many parts or is not JSON.
 */
async function readJson(
  hub: HubAccess,
  model: ModelId,
  { commit, files }: HubListing,
  path: string,
  signal: AbortSignal,
): Promise<unknown> {
  const size = files.find((file) => file.path === path)?.size ?? 0;
  if (size > CONFIG_BOUNDS.bytes) return undefined;
  const name = path.split('/').map(encodeURIComponent).join('/');
  const url = `${hub.endpoint}/${model}/resolve/${commit}/${name}`;
  try {
    const ended = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    const response = await hubFetch(hub, url, { signal: ended });
    if (!response.ok) {
      await response.body?.cancel();
      throw new HubRefusal(response);
    }
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    // Throwing inside the loop closes the connection.
    for await (const chunk of chunksOf(response)) {
      bytes += chunk.byteLength;
      if (bytes > size)
        throw new AssayError('hub_unreachable', `The hub sends more of ${path} than it lists. Try again.`);
      chunks.push(chunk);
    }
    const whole = Buffer.concat(chunks);
    return path.endsWith('.pt') ? readTorchFile(whole) : parseResponse(whole.toString());
  } catch (error) {
    signal.throwIfAborted();
    throw hubError(model, error, hub.endpoint);
  }
}

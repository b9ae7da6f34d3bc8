import { readdir } from 'node:fs/promises';
import type { MediaKind } from '../../lib/contract/conversation.ts';
import { AssayError, isAssayError } from '../../lib/errors.ts';
import { formatBytes } from '../../lib/format-bytes.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { BaseModelId } from '../contracts/adapter.ts';
import { ENCODER_FILES, encoderFiles } from '../contracts/encoder-contracts.ts';
import { CONTRACT_SETTINGS, readContractFile } from '../contracts/read-files.ts';
import { diskError, SPARE_BYTES } from '../store/disk-error.ts';
import { GENAI_CONFIG, GENAI_PROCESSORS } from '../store/genai-config.ts';
import { publishSnapshot } from '../store/hub-cache.ts';
import { placeTexts } from '../store/import-gguf.ts';
import { lock } from '../store/lock.ts';
import { recordedChoice } from '../store/model-choice.ts';
import {
  GGUF_SUFFIX,
  type ModelFiles,
  pathsOf,
  type SelectOptions,
  selectModelFiles,
  withEncoderFor,
} from '../store/model-files.ts';
import { baseName, hashOfPart, join } from '../store/paths.ts';
import { BlobFetcher } from './blob-fetcher.ts';
import { type HubFile, type HubListing, listModelFiles } from './hub-client.ts';
import { hubError } from './hub-error.ts';
import { judgeRepository, type RepositoryVerdict } from './judge-repository.ts';
import type { PullContext, PullOptions } from './pull-context.ts';

export interface PullReport {
  commit: string;
  /** Number of bytes received over the network. */
  bytes: number;
}

/**
 * Downloads to the hub cache those files of a model that the engine needs. A file becomes visible only when it is
 * verified. Continues an earlier attempt. Waits for another process that downloads the same model, and uses its files.
 *
 * @throws AssayError `model_not_found` if the hub has no such model or revision, or the model cannot run here;
 *   `model_not_allowed` if the token may not read it; `hub_unreachable` if the hub gives no valid answer, or sends a
 *   damaged file twice; `disk_full` if the files do not fit on the disk; `internal_error` if `HF_HUB_CACHE` cannot be
 *   written to; `invalid_value` for a revision or file name that is not safe as a path; the reason of `options.signal`
 *   or, while the list of files is fetched, `options.listingSignal` if it aborts
 */
export async function pullModel(context: PullContext, model: ModelId, options: PullOptions): Promise<PullReport> {
  const { hub, paths } = context;
  const revision = options.revision ?? 'main';
  paths.ref(model, revision);
  const listing = await listModelFiles(hub, model, revision, {
    signal: options.listingSignal ? AbortSignal.any([options.signal, options.listingSignal]) : options.signal,
    listingMs: context.settings.listingMs,
  });
  const { file } = await recordedChoice(paths, model);
  const choice = { ...options, ...(file === undefined || options.base ? {} : { file }) };
  // Whether the model is an encoder is known once its configuration is downloaded. Then its files are selected again.
  const first = selectModelFiles(listing.files, choice);
  const configured = selectedConfiguration(listing);
  const mayDecide = Object.keys(configured).some((name) => !COMMON_FILES.includes(name));
  if ('missing' in first && !mayDecide) throw noUsableFiles(model, first.missing);
  const selected = 'files' in first ? first.files : { ...NO_FILES, support: configured };
  const published: PublishedModel = { model, listing, selected, base: options.base };
  try {
    for (const { path } of filesFor(published, 'all')) paths.snapshotFile(model, listing.commit, path);
    await paths.makeDirectory(paths.locks(model));
    const held = await lock(paths.modelLock(model), hub.clock, options.signal, () => {
      void reportOtherProcess(context, published, options);
    });
    try {
      // Created only now, because the process that held the lock before may have removed the model.
      await paths.makeDirectory(paths.blobs(model));
      await removeOutdatedParts(context, published);
      const { bytes, files, graph } = await fetchAll(context, published, choice);
      const derived = graph.endsWith(GGUF_SUFFIX) ? await derivedFiles(context, model, files, graph) : [];
      const all = [...files, ...derived];
      await publishSnapshot(paths, model, { commit: listing.commit, revision, files: all, graph });
      return { commit: listing.commit, bytes };
    } finally {
      held.release();
    }
  } catch (error) {
    options.signal.throwIfAborted();
    const shown = diskError(error, 'HF_HUB_CACHE');
    throw shown instanceof AssayError ? shown : hubError(model, error, hub.endpoint);
  }
}

/** Holds a repository's list of files, and the selected ones. */
interface PublishedModel {
  /** True for the base model of an adapter, whose own contract does not matter. */
  base?: boolean | undefined;
  model: ModelId;
  listing: HubListing;
  selected: ModelFiles;
}

/**
 * Returns the selected files with the encoder of the kind of media that is in `reads`: `all` for every encoder, null
 * for none.
 */
function filesFor({ listing, selected }: PublishedModel, reads: MediaKind | 'all' | null): HubFile[] {
  const wanted = new Set(pathsOf(reads === 'all' ? selected : withEncoderFor(reads, selected)));
  return listing.files.filter((file) => wanted.has(file.path));
}

/** Makes the configuration and the tokenizer of a model from its GGUF file, which has been downloaded. */
async function derivedFiles(
  { paths, describe }: PullContext,
  model: ModelId,
  files: readonly HubFile[],
  graph: string,
): Promise<Awaited<ReturnType<typeof placeTexts>>> {
  const hash = files.find(({ path }) => path === graph)?.hash ?? '';
  return placeTexts(paths, model, graph, await describe(paths.blob(model, hash)));
}

/** Returns one file for each blob: files with the same content are one blob in the hub cache. */
function blobsOf(files: readonly HubFile[]): HubFile[] {
  return [...new Map(files.map((file) => [file.hash, file])).values()];
}

/**
 * Downloads the files that are missing, and verifies all of them. The configuration comes first, because it may show
 * that the rest, or the encoder of images or audio, is useless.
 */
async function fetchAll(
  context: PullContext,
  published: PublishedModel,
  options: PullOptions & SelectOptions,
): Promise<{ bytes: number; files: HubFile[]; graph: string }> {
  const { model, listing } = published;
  const fetcher = new BlobFetcher(context, model, listing.commit, options);
  const withoutEncoder = blobsOf(filesFor(published, null));
  const missing = await fetcher.verifyExisting(withoutEncoder);
  await checkSpace(context, model, missing);
  const size = sum(withoutEncoder);
  await fetcher.fetchMissing(missing.filter(isConfiguration), { done: size - sum(missing), total: size });
  const { refusal, reads, selection, base } = await judgeConfiguration(context, published, options);
  if (refusal) throw new AssayError('model_not_found', `${model} cannot run here: ${refusal}.`, { param: 'model' });
  const below = base ? await pullBase(context, base, options) : 0;
  if ('missing' in selection) throw noUsableFiles(model, selection.missing);
  const files = filesFor({ ...published, selected: selection.files }, reads);
  for (const { path } of files) context.paths.snapshotFile(model, listing.commit, path);
  const known = new Set(withoutEncoder.map(({ hash }) => hash));
  const needed = new Set(files.map(({ hash }) => hash));
  const others = blobsOf(files).filter(({ hash }) => !known.has(hash));
  const rest = [
    ...missing.filter((file) => !isConfiguration(file) && needed.has(file.hash)),
    ...(await fetcher.verifyExisting(others)),
  ];
  await checkSpace(context, model, rest);
  const total = sum(blobsOf(files));
  await fetcher.fetchMissing(rest, { done: total - sum(rest), total });
  return { bytes: below + fetcher.fetchedBytes, files, graph: selection.files.graph };
}

/**
 * Downloads the checkpoint of the model that an adapter changes, at the revision that the adapter names; where the hub
 * no longer has that one, the newest. Returns the number of bytes received.
 */
async function pullBase(
  context: PullContext,
  { model, revision }: BaseModelId,
  { device, signal, onProgress }: PullOptions,
): Promise<number> {
  const pull = (wanted: string | null) =>
    pullModel(context, model, { device, signal, onProgress, base: true, ...(wanted ? { revision: wanted } : {}) });
  const { bytes } = await pull(revision).catch((error: unknown) => {
    if (revision === null || !isAssayError(error, 'model_not_found')) throw error;
    return pull(null);
  });
  return bytes;
}

function noUsableFiles(model: ModelId, missing: string): AssayError {
  const message = `${model} has no model that this engine can read. ${missing}`;
  return new AssayError('model_not_found', message, { param: 'model' });
}

/** Files of `ENCODER_FILES` that other models have, too. */
const COMMON_FILES: readonly string[] = ['config.json', 'tokenizer_config.json'];

/** Selection without any file. */
const NO_FILES: ModelFiles = { layout: 'encoder', dtype: null, graph: '', data: [], support: {} };

/** Returns the files of the listing that tell the contract of an encoder model. */
function selectedConfiguration({ files }: HubListing): Record<string, string> {
  return encoderFiles(new Set(files.map(({ path }) => path)));
}

/** Removes the parts of files that the hub does not list any more, because no later download would continue them. */
async function removeOutdatedParts({ fs, paths }: PullContext, { model, listing }: PublishedModel): Promise<void> {
  const listed = new Set(listing.files.map(({ hash }) => hash));
  for (const name of await readdir(paths.blobs(model))) {
    const hash = hashOfPart(name);
    if (hash !== null && !listed.has(hash)) await fs.rm(join(paths.blobs(model), name), { force: true });
  }
}

/** Throws `disk_full` if the missing files do not fit on the disk. */
async function checkSpace(context: PullContext, model: ModelId, missing: readonly HubFile[]): Promise<void> {
  const needed = sum(missing) - (await bytesThere(context, model, missing));
  const { bavail, bsize } = await context.fs.statfs(context.paths.blobs(model));
  if (needed <= 0 || needed + SPARE_BYTES <= bavail * bsize) return;
  throw new AssayError(
    'disk_full',
    `${model} needs ${formatBytes(needed)} more, with ${formatBytes(SPARE_BYTES)} to spare, and the disk of HF_HUB_CACHE has ${formatBytes(bavail * bsize)} free. Free space (assay list, assay rm) or set HF_HUB_CACHE to a directory on a larger disk.`,
  );
}

const FIRST: ReadonlySet<string> = new Set([GENAI_CONFIG, ...GENAI_PROCESSORS, ...CONTRACT_SETTINGS]);
/** Paths of the files that tell the contract of an encoder model. */
const CONTRACTS: ReadonlySet<string> = new Set(Object.values(ENCODER_FILES).flat());

const isConfiguration = ({ path }: HubFile): boolean => FIRST.has(baseName(path)) || CONTRACTS.has(path);

/** Judges from those configuration files that are downloaded whether the model can run here. */
async function judgeConfiguration(
  { paths }: PullContext,
  published: PublishedModel,
  options: SelectOptions,
): Promise<RepositoryVerdict> {
  const { model, listing } = published;
  const files = filesFor(published, null);
  const { base: named } = await recordedChoice(paths, model);
  return judgeRepository(model, listing, { ...options, named }, async (path, name) => {
    const file = files.find((one) => one.path === path);
    return file && readContractFile(paths.blob(model, file.hash), name);
  });
}

/** Reports the progress of another process that downloads the same model. */
async function reportOtherProcess(
  context: PullContext,
  published: PublishedModel,
  options: PullOptions,
): Promise<void> {
  const { reads } = await judgeConfiguration(context, published, options).catch(() => ({ reads: null }));
  const blobs = blobsOf(filesFor(published, reads));
  const bytes = await bytesThere(context, published.model, blobs);
  const step = 'another process is fetching it';
  options.onProgress({ stage: 'downloading', total: sum(blobs), step, bytes });
}

/** Returns how many bytes of these files are on the disk, complete or not. */
async function bytesThere(context: PullContext, model: ModelId, files: readonly HubFile[]): Promise<number> {
  const sizes = files.map(async (file) => {
    const complete = await context.fs.stat(context.paths.blob(model, file.hash)).catch(() => null);
    // Blocks are counted, because a partial file has its full size as soon as its last range begins.
    const partial = await context.fs.stat(context.paths.partialBlob(model, file.hash)).catch(() => null);
    return complete?.size ?? Math.min((partial?.blocks ?? 0) * 512, file.size);
  });
  return (await Promise.all(sizes)).reduce((a, b) => a + b, 0);
}

const sum = (files: readonly HubFile[]): number => files.reduce((bytes, file) => bytes + file.size, 0);

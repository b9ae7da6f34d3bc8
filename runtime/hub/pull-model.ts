import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { judgeArchitecture } from '../store/architecture.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { diskError, formatBytes, SPARE_BYTES } from '../store/disk-error.ts';
import { publishSnapshot } from '../store/hub-cache.ts';
import { lock } from '../store/lock.ts';
import { pathsOf, selectModelFiles } from '../store/model-files.ts';
import { baseName } from '../store/paths.ts';
import { BlobFetcher } from './blob-fetcher.ts';
import { type HubFile, listModelFiles } from './hub-client.ts';
import { hubError } from './hub-error.ts';
import type { PullContext, PullOptions } from './pull-context.ts';

export interface PullReport {
  commit: string;
  /** Number of bytes received over the network. */
  bytes: number;
}

/**
 * Downloads the files of a model that the engine needs to the hub cache. A file becomes visible only when it is
 * verified. Continues an earlier attempt. Waits for another process that downloads the same model, and uses its files.
 *
 * @throws AssayError `model_not_found`, `model_not_allowed`, `hub_unreachable`, `disk_full`
 */
export async function pullModel(context: PullContext, model: ModelId, options: PullOptions): Promise<PullReport> {
  const { hub, paths } = context;
  const revision = options.revision ?? 'main';
  paths.ref(model, revision);
  const listing = await listModelFiles(hub, model, revision, {
    signal: options.listingSignal ? AbortSignal.any([options.signal, options.listingSignal]) : options.signal,
    listingMs: context.settings.listingMs,
  });
  const selection = selectModelFiles(listing.files, options);
  if ('missing' in selection) {
    throw new AssayError('model_not_found', `${model} has no model that this engine can read. ${selection.missing}`, {
      param: 'model',
    });
  }
  const wanted = new Set(pathsOf(selection.files));
  const files = listing.files.filter((file) => wanted.has(file.path));
  try {
    for (const file of files) paths.snapshotFile(model, listing.commit, file.path);
    await paths.makeDirectory(paths.locks(model));
    // Files with the same content are one blob.
    const blobs = [...new Map(files.map((file) => [file.hash, file])).values()];
    const total = sum(blobs);
    const waiting = { stage: 'downloading', total, step: 'another process is fetching it' } as const;
    const held = await lock(paths.modelLock(model), hub.clock, options.signal, () => {
      void bytesThere(context, model, blobs).then((bytes) => options.onProgress({ ...waiting, bytes }));
    });
    try {
      // Not earlier, because the process that held the lock may have removed the model.
      await paths.makeDirectory(paths.blobs(model));
      const bytes = await fetchAll(context, model, listing.commit, blobs, options);
      await publishSnapshot(paths, model, { commit: listing.commit, revision, files, graph: selection.files.graph });
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

async function fetchAll(
  context: PullContext,
  model: ModelId,
  commit: string,
  files: readonly HubFile[],
  options: PullOptions,
): Promise<number> {
  const fetcher = new BlobFetcher(context, model, commit, options);
  const missing = await fetcher.verifyExisting(files);
  const needed = sum(missing) - (await bytesThere(context, model, missing));
  const { bavail, bsize } = await context.fs.statfs(context.paths.blobs(model));
  if (needed > 0 && needed + SPARE_BYTES > bavail * bsize) {
    throw new AssayError(
      'disk_full',
      `${model} needs ${formatBytes(needed)} more, with ${formatBytes(SPARE_BYTES)} to spare, and the disk of HF_HUB_CACHE has ${formatBytes(bavail * bsize)} free. Free space (assay list, assay rm) or set HF_HUB_CACHE to a directory on a larger disk.`,
    );
  }
  // The configuration is downloaded first, because it may show that the rest is useless.
  const isConfiguration = ({ path }: HubFile) => CONFIGURATIONS.includes(baseName(path));
  const total = sum(files);
  await fetcher.fetchMissing(missing.filter(isConfiguration), { done: total - sum(missing), total });
  await checkArchitecture(context, model, files.filter(isConfiguration));
  const rest = missing.filter((file) => !isConfiguration(file));
  await fetcher.fetchMissing(rest, { done: total - sum(rest), total });
  return fetcher.fetchedBytes;
}

const CONFIGURATIONS: readonly string[] = ['config.json', 'genai_config.json'];

/** Throws `model_not_found` if the model's configuration shows that it cannot run here. */
async function checkArchitecture({ paths }: PullContext, model: ModelId, files: readonly HubFile[]): Promise<void> {
  const read = async (name: string) => {
    const file = files.find(({ path }) => baseName(path) === name);
    return file && readBoundedJson(paths.blob(model, file.hash), CONFIG_BOUNDS, name);
  };
  const [config, genai] = await Promise.all(CONFIGURATIONS.map(read));
  const { refusal } = judgeArchitecture(config, genai);
  if (refusal) throw new AssayError('model_not_found', `${model} cannot run here: ${refusal}.`, { param: 'model' });
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

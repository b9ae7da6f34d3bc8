import { listFiles, modelInfo } from '@huggingface/hub';
import type { Clock } from '../../lib/clock.ts';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { FileHash } from '../store/digest.ts';
import type { FileEntry } from '../store/model-files.ts';
import { HubRefusal, hubError } from './hub-error.ts';
import { backoff } from './retry.ts';

/** A file on the hub and the hash that its bytes must have. */
export interface HubFile extends FileEntry {
  hash: FileHash;
}

/** What a revision of a model is: one commit and its files. */
export interface HubListing {
  commit: string;
  files: readonly HubFile[];
}

/** What talking to a hub needs from outside. */
export interface HubAccess {
  fetch: typeof fetch;
  clock: Clock;
  /** 0 to 1, for the spread of waiting times. */
  random(): number;
  /** Base address, without a slash at the end. */
  endpoint: string;
  token: string | null;
  offline: boolean;
}

const ATTEMPTS = 4;
const METADATA_TIMEOUT_MS = 30_000;
/** More files than any model has; a listing that goes on and on is not read to its end. */
const MAX_FILES = 20_000;
/** 1 TiB, more than any file of a model. */
const MAX_FILE_BYTES = 2 ** 40;
const COMMIT = /^[0-9a-f]{40}$/;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/**
 * Resolves a revision (`main`, a tag, a commit) to a commit and lists the files of that commit.
 *
 * @throws AssayError `model_not_found`, `model_not_allowed`, `hub_unreachable`
 */
export async function listModelFiles(
  hub: HubAccess,
  model: ModelId,
  revision: string,
  signal: AbortSignal,
): Promise<HubListing> {
  if (hub.offline) {
    throw new AssayError('hub_unreachable', 'HF_HUB_OFFLINE is set, so the hub is not asked. Unset it to download.');
  }
  if (!URL.canParse(hub.endpoint)) {
    throw new AssayError('hub_unreachable', 'HF_ENDPOINT is no address. Give one such as https://huggingface.co.');
  }
  const common = {
    hubUrl: hub.endpoint,
    ...(hub.token ? { accessToken: hub.token } : {}),
    fetch: metadataFetch(hub, signal),
  };
  const read = async (): Promise<HubListing> => {
    const { sha } = await modelInfo({ ...common, name: model, revision, additionalFields: ['sha'] });
    if (typeof sha !== 'string' || !COMMIT.test(sha)) throw notAHub(hub);
    const files: HubFile[] = [];
    for await (const entry of listFiles({ ...common, repo: model, revision: sha, recursive: true })) {
      if (entry.type !== 'file') continue;
      const hash = entry.lfs?.oid ?? entry.oid ?? '';
      const size: unknown = entry.lfs ? entry.lfs.size : entry.size;
      if (!HASH.test(hash) || !isSize(size)) throw notAHub(hub);
      files.push({ path: entry.path, size, hash });
      if (files.length > MAX_FILES) throw notAHub(hub);
    }
    return { commit: sha, files };
  };
  for (let tried = 1; ; tried += 1) {
    try {
      return await read();
    } catch (error) {
      signal.throwIfAborted();
      const final = error instanceof AssayError || (error instanceof HubRefusal && !error.temporary);
      if (final || tried >= ATTEMPTS) throw hubError(model, error, hub.endpoint);
      const asked = error instanceof HubRefusal ? error.retryAfterMs : null;
      await hub.clock.sleep(Math.max(backoff(tried, hub.random()), asked ?? 0), signal);
    }
  }
}

/** The sum of sizes says whether the disk has room, and a size how many ranges are fetched: neither may be nonsense. */
function isSize(size: unknown): size is number {
  return typeof size === 'number' && Number.isInteger(size) && size >= 0 && size <= MAX_FILE_BYTES;
}

/** `fetch` for small answers: with a time limit, and any answer but success as `HubRefusal`, which keeps the hub's error code. */
function metadataFetch(hub: HubAccess, signal: AbortSignal): typeof fetch {
  return async (input, init) => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(METADATA_TIMEOUT_MS)]);
    const response = await hub.fetch(input, { ...init, signal: limited });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new HubRefusal(response);
  };
}

function notAHub(hub: HubAccess): AssayError {
  const host = new URL(hub.endpoint).host;
  return new AssayError('hub_unreachable', `${host} does not answer as a hub does. Check HF_ENDPOINT.`);
}

import { readFile } from 'node:fs/promises';
import { listFiles, modelInfo } from '@huggingface/hub';
import { systemClock } from '../../lib/clock.ts';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { FileHash } from '../store/digest.ts';
import type { HubEnvironment } from '../store/environment.ts';
import type { FileEntry } from '../store/model-files.ts';
import { backoff, HubRefusal, hubError } from './hub-error.ts';
import { MetadataReader, RevisionInfo, TreePage } from './metadata.ts';
import { addressesOf, fetchPublic } from './public-address.ts';
import type { HubAccess } from './pull-context.ts';

/** Describes a file on the hub, with the hash that its content must have. */
export interface HubFile extends FileEntry {
  hash: FileHash;
}

/** Describes a revision of a model on the hub: its commit, and the files of that commit. */
export interface HubListing {
  commit: string;
  files: readonly HubFile[];
}

const ATTEMPTS = 4;

/**
 * Resolves a revision (`main`, a tag, a commit) to a commit, and lists the files of that commit.
 *
 * @param listingMs timeout in milliseconds for the requests of all attempts together, without the pauses between them
 * @throws AssayError `model_not_found` if the hub does not know the model or the revision; `model_not_allowed` if the
 *   token may not read it; `hub_unreachable` if the hub gives no valid list in time or `HF_HUB_OFFLINE` is set; the
 *   reason of `signal` if it aborts
 */
export async function listModelFiles(
  hub: HubAccess,
  model: ModelId,
  revision: string,
  { signal, listingMs }: { signal: AbortSignal; listingMs: number },
): Promise<HubListing> {
  checkSettings(hub);
  let leftMs = listingMs;
  for (let tried = 1; ; tried += 1) {
    const started = hub.clock.now();
    const deadline = AbortSignal.timeout(Math.max(leftMs, 0));
    try {
      return await readListing(hub, model, revision, AbortSignal.any([signal, deadline]));
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.aborted) throw tooSlow(hub, listingMs);
      const final = error instanceof AssayError || (error instanceof HubRefusal && !error.temporary);
      if (final || tried >= ATTEMPTS) throw hubError(model, error, hub.endpoint);
      leftMs -= hub.clock.now() - started;
      const asked = error instanceof HubRefusal ? error.retryAfterMs : null;
      await hub.clock.sleep(Math.max(backoff(tried, hub.random()), asked ?? 0), signal);
    }
  }
}

/** Throws `hub_unreachable` if the settings allow no request. */
function checkSettings({ offline, endpoint, token }: HubAccess): void {
  const refused = (message: string) => new AssayError('hub_unreachable', message);
  if (offline) throw refused('HF_HUB_OFFLINE is set, so Assay does not contact the hub. Unset it to download.');
  // `localhost:5000` can be parsed, too: as the protocol `localhost:`.
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) {
    throw refused('HF_ENDPOINT is not an address. Set one such as https://huggingface.co.');
  }
  // `fetch` refuses such a header, which would look like a fault of the network.
  if (token !== null && !/^[\x21-\x7e]+$/.test(token)) {
    throw refused(
      'The access token has a character that no token has, such as a space. Set HF_TOKEN again, or run: hf auth login',
    );
  }
}

async function readListing(hub: HubAccess, model: ModelId, revision: string, signal: AbortSignal): Promise<HubListing> {
  const reader = new MetadataReader(hub, signal);
  const info = { hubUrl: hub.endpoint, fetch: reader.fetchAs(RevisionInfo), name: model, revision };
  const { sha } = await modelInfo({ ...info, additionalFields: ['sha'] });
  const files: HubFile[] = [];
  const tree = { hubUrl: hub.endpoint, fetch: reader.fetchAs(TreePage), repo: model, revision: sha, recursive: true };
  for await (const entry of listFiles(tree)) {
    if (entry.type !== 'file') continue;
    const { oid, size } = entry.lfs ?? entry;
    files.push({ path: entry.path, size, hash: oid! });
  }
  return { commit: sha, files };
}

function tooSlow({ endpoint }: HubAccess, listingMs: number): AssayError {
  const { host } = new URL(endpoint);
  const seconds = listingMs / 1000;
  return new AssayError(
    'hub_unreachable',
    `The list of files from ${host} took longer than ${seconds} s. Try again later.`,
  );
}

/** Creates access to the hub that the environment names, with the real network and clock. */
export async function openHub({ endpoint, token, tokenFile, offline }: HubEnvironment): Promise<HubAccess> {
  return {
    fetch: (input, init) => fetch(input, init),
    fetchPublic,
    addressesOf,
    clock: systemClock,
    random: Math.random,
    endpoint,
    token: token ?? (await savedToken(tokenFile)),
    offline,
  };
}

/** Reads the token that `hf auth login` saved; null if there is none. */
async function savedToken(file: string): Promise<string | null> {
  return (await readFile(file, 'utf8').catch(() => '')).trim() || null;
}

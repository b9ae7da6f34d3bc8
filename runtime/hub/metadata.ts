import * as v from 'valibot';
import { AssayError } from '../../lib/errors.ts';
import { excessOf } from '../../lib/json/scan.ts';
import { HubRefusal } from './hub-error.ts';
import { chunksOf, hubFetch } from './hub-fetch.ts';
import type { HubAccess } from './pull-context.ts';

/** Limits for one listing of a model's files, over all its responses. */
const LIMITS = {
  /** Bytes after decompression. A list of 20,000 entries has about 6 MB. */
  bytes: 16 * 1024 * 1024,
  /** Files and directories. No model has that many. */
  entries: 20_000,
  /** Pages of the list. A hub sends up to 1,000 entries in each. */
  pages: 1_000,
} as const;

/** Timeout of one response in milliseconds. */
const ANSWER_MS = 10_000;

/** Maximum bytes of one file of a model: 1 TiB. */
const MAX_FILE_BYTES = 2 ** 40;
/** Size of a file in bytes. It is bounded, because it determines the disk space and the ranges to download. */
const Size = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(MAX_FILE_BYTES));
const Hash = v.pipe(v.string(), v.regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/));

/** The hub's answer about a revision: the hash of its commit. */
export const RevisionInfo = v.looseObject({ sha: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)) });

const FileEntry = v.looseObject({
  type: v.literal('file'),
  path: v.string(),
  oid: Hash,
  size: Size,
  lfs: v.optional(v.looseObject({ oid: Hash, size: Size })),
});

/** The hub's answer with one page of a commit's files and directories. */
export const TreePage = v.array(v.union([FileEntry, v.looseObject({ type: v.picklist(['directory', 'unknown']) })]));

/**
 * Reads a hub's untrusted JSON about a model, within `LIMITS` for all responses of one listing. Provides the `fetch`
 * for `@huggingface/hub`, which requests one page after another.
 */
export class MetadataReader {
  readonly #hub: HubAccess;
  readonly #signal: AbortSignal;
  #bytes = 0;
  #entries = 0;
  #pages = 0;

  constructor(hub: HubAccess, signal: AbortSignal) {
    this.#hub = hub;
    this.#signal = signal;
  }

  /**
   * Returns a `fetch` that checks each response against `schema`.
   *
   * @throws `HubRefusal` for an error status; `AssayError` `hub_unreachable` for an address on another server, and for
   *   a response that exceeds `LIMITS` or does not match the schema; otherwise what `hubFetch` throws
   */
  fetchAs(schema: typeof RevisionInfo | typeof TreePage): typeof fetch {
    return async (input, init) => {
      const { host, origin } = new URL(this.#hub.endpoint);
      const url = new URL(String(input));
      if (url.origin !== origin) {
        throw new AssayError(
          'hub_unreachable',
          `${host} gives the next page of its files an address on another server (${url.host}), which is not followed. Check HF_ENDPOINT.`,
        );
      }
      this.#pages += 1;
      if (this.#pages > LIMITS.pages) throw tooMuch(host, `comes in more than ${LIMITS.pages} pages`);
      const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(ANSWER_MS)]);
      const response = await hubFetch(this.#hub, url, { ...init, signal });
      if (!response.ok) {
        await response.body?.cancel();
        throw new HubRefusal(response);
      }
      const text = await this.#read(response, host);
      const answer = v.safeParse(schema, parseResponse(text));
      if (!answer.success) throw notAHub(this.#hub);
      if (Array.isArray(answer.output)) this.#entries += answer.output.length;
      if (this.#entries > LIMITS.entries) throw tooMuch(host, `has more than ${LIMITS.entries} entries`);
      return new Response(text, { headers: response.headers });
    };
  }

  async #read(response: Response, host: string): Promise<string> {
    const chunks: Uint8Array[] = [];
    // Throwing inside the loop closes the connection.
    for await (const chunk of chunksOf(response)) {
      this.#bytes += chunk.byteLength;
      if (this.#bytes > LIMITS.bytes) throw tooMuch(host, `is longer than ${LIMITS.bytes / 1024 / 1024} MiB`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  }
}

/**
 * Parses an untrusted JSON response of the hub. Returns undefined, which matches no schema, for a text that is not
 * JSON, nests too deep or has too many parts (`excessOf`).
 */
export function parseResponse(text: string): unknown {
  if (excessOf(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function tooMuch(host: string, what: string): AssayError {
  return new AssayError(
    'hub_unreachable',
    `The list of files from ${host} ${what}, which is too much for a model. Check HF_ENDPOINT.`,
  );
}

function notAHub({ endpoint }: HubAccess): AssayError {
  const { host } = new URL(endpoint);
  return new AssayError('hub_unreachable', `${host} does not answer like a hub. Check HF_ENDPOINT.`);
}

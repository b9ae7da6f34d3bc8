import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { type ModelId, parseModelId } from '../../lib/model-id.ts';
import { addressesOf, fetchPublic } from '../../runtime/hub/public-address.ts';
import type { HubAccess, PullContext, PullOptions } from '../../runtime/hub/pull-context.ts';
import { type PullReport, pullModel } from '../../runtime/hub/pull-model.ts';
import { StorePaths } from '../../runtime/store/paths.ts';
import { describeGguf } from '../../runtime/worker/describe-gguf.ts';
import type { HubServer } from './hub-server.ts';
import { type HubRepository, hubRepository } from './repository.ts';

/** Bytes of one request in these tests: few, so that a small model has many requests. */
export const RANGE_BYTES = 64 * 1024;

export const MODEL: ModelId = parseModelId('acme/tiny');

/** Creates a repository whose bytes look like a model to the hub and the store (nothing loads it). */
export function randomModel(
  options: { id?: string; access?: HubRepository['access']; dataBytes?: number } = {},
): HubRepository {
  return hubRepository(
    options.id ?? MODEL,
    {
      'README.md': '# tiny',
      'config.json': '{"model_type":"qwen3","max_position_embeddings":512}',
      'tokenizer.json': JSON.stringify({ filler: 'x'.repeat(20_000) }),
      'tokenizer_config.json': '{}',
      // The same content: one blob.
      'generation_config.json': '{}',
      'onnx/model_q4.onnx': randomBytes(3000),
      'onnx/model_q4.onnx_data': randomBytes(options.dataBytes ?? 10 * RANGE_BYTES + 123),
      'onnx/model_q4f16.onnx': randomBytes(3000),
    },
    options.access,
  );
}

/** Paths of `randomModel` that a CPU needs. */
const NEEDED = [
  'config.json',
  'generation_config.json',
  'onnx/model_q4.onnx',
  'onnx/model_q4.onnx_data',
  'tokenizer.json',
  'tokenizer_config.json',
] as const;

/** The files at `NEEDED`, of which some have the same content. */
export function underNeededPaths(model: HubRepository): HubRepository['files'] {
  return model.files.filter((file) => (NEEDED as readonly string[]).includes(file.path));
}

/** Checks that every needed file is present, under each of its names, with the hub's bytes. */
export async function expectWhole(box: Machine, model: HubRepository): Promise<void> {
  for (const file of underNeededPaths(model)) {
    const bytes = await fs.readFile(box.paths.snapshotFile(MODEL, model.commit, file.path));
    assert(bytes.equals(file.content), `${file.path} is not the hub's`);
  }
}

/** The files that a pull fetches: each content once. */
export function neededFiles(model: HubRepository): HubRepository['files'] {
  return [...new Map(underNeededPaths(model).map((file) => [file.oid, file])).values()];
}

export interface Machine extends PullContext {
  pull(options?: Partial<PullOptions>, model?: ModelId): Promise<PullReport>;
  /** Returns the files of the cache by path below its root; links as `-> target`. */
  tree(): Promise<string[]>;
}

/** Creates a machine with an empty cache that pulls from `hub`; its clock hardly waits. */
export async function machine(
  hub: HubServer,
  changes: {
    hub?: Partial<HubAccess>;
    fs?: Partial<PullContext['fs']>;
    hubCache?: string;
    settings?: Partial<PullContext['settings']>;
  } = {},
): Promise<Machine> {
  const base = await fs.mkdtemp(join(tmpdir(), 'assay-hub-'));
  const paths = new StorePaths({
    hubCache: changes.hubCache ?? join(base, 'hub'),
    assayHome: join(base, 'assay'),
    bundled: null,
  });
  const context: PullContext = {
    paths,
    describe: async (file) => describeGguf(file),
    fs: { ...fs, ...changes.fs },
    settings: {
      connections: 4,
      rangeBytes: RANGE_BYTES,
      stallMs: 30_000,
      listingMs: 25_000,
      unfollowedMs: 5_000,
      ...changes.settings,
    },
    hub: {
      fetch,
      fetchPublic,
      addressesOf,
      clock: { now: systemClock.now, sleep: (ms, signal) => systemClock.sleep(Math.min(ms, 100), signal) },
      random: () => 0,
      endpoint: hub.endpoint,
      token: null,
      offline: false,
      ...changes.hub,
    },
  };
  return {
    ...context,
    pull: (options = {}, model = MODEL) =>
      pullModel(context, model, {
        device: 'CPU',
        signal: AbortSignal.timeout(60_000),
        onProgress: () => undefined,
        ...options,
      }),
    tree: async () => {
      const entries = await fs.readdir(paths.roots.hubCache, { recursive: true, withFileTypes: true }).catch(() => []);
      const lines = entries
        .filter((entry) => !entry.isDirectory())
        .map(async (entry) => {
          const path = join(entry.parentPath, entry.name);
          const name = path.slice(paths.roots.hubCache.length + 1);
          return entry.isSymbolicLink() ? `${name} -> ${await fs.readlink(path)}` : name;
        });
      return (await Promise.all(lines)).sort();
    },
  };
}

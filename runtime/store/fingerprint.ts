import { createHash } from 'node:crypto';
import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { hashFile } from './digest.ts';
import type { LocalModel } from './hub-cache.ts';
import { BACKBONE_FOLDER, inheritedFrom, pathInVariant, pathsOf, weightsOf } from './model-files.ts';
import { baseName, type StorePaths } from './paths.ts';

/** Everything that determines the result of a compile. It identifies a compiled model in the store. */
export const Fingerprint = v.strictObject({
  /** Hash (sha256) over the paths and hashes of all source files (`sourceHash`). */
  source: v.string(),
  /** Version of onnxruntime-node. */
  runtime: v.string(),
  /** Version of the compiler (`COMPILER_VERSION`). */
  compiler: v.number(),
  /** Device for which the compile was requested. */
  device: v.picklist(['NPU', 'GPU', 'CPU']),
  /** Number format of the source weights; null if the repository does not state it. */
  dtype: v.nullable(v.string()),
  precision: v.string(),
  /** Kernel family of the CPU (`kernelFamily`), if the precision was chosen by measuring speed. */
  kernels: v.exactOptional(v.string()),
  /** Identity of the plugin, chip and driver, if a plugin drives the device. */
  plugin: v.exactOptional(v.string()),
  maxPromptLen: v.number(),
});
export type Fingerprint = v.InferOutput<typeof Fingerprint>;

/**
 * Returns the directory name of a compiled model: device, precision and prompt length for human readers, then a hash of
 * the whole fingerprint.
 */
export function fingerprintKey(fingerprint: Fingerprint): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(v.parse(Fingerprint, fingerprint)))
    .digest('hex');
  const { device, precision, maxPromptLen } = fingerprint;
  return `${device}-${precision}-${maxPromptLen}-${hash.slice(0, 16)}`.toLowerCase();
}

/** Describes a source file of a model, and the hash that its content must have. */
export interface SourceFile {
  /** Path relative to the directory of the model; for a file of its base model, with that model's id in front. */
  path: string;
  /** Path in a folder that contains only the chosen variant. */
  place: string;
  /** Absolute path with all links resolved. */
  real: string;
  size: number;
  hash: string;
}

const BLOB_NAME = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Cached hashes of files that are not named by their hash, keyed by path, size and modification time. */
const computed = new Map<string, string>();

/**
 * Returns the source files of a model with their hashes. In the hub cache, a file is a link to a blob that is named by
 * its hash, so nothing is read; other files are hashed, once per process unless they change. Throws an `Error` if a
 * file no longer exists.
 */
export async function sourceFiles(paths: StorePaths, model: LocalModel): Promise<SourceFile[]> {
  const { base } = model;
  const own = pathsOf(model.files).map((path) => ({
    path,
    file: paths.file(model.directory, path),
    place: pathInVariant(model.files, path),
  }));
  const below = base ? weightsOf(base.files) : [];
  const files = below.map((path) => ({
    path: `${base?.id}/${path}`,
    file: paths.file(base?.directory ?? '', path),
    place: `${BACKBONE_FOLDER}/${pathInVariant(base?.files ?? model.files, path)}`,
  }));
  for (const [name, path] of base ? inheritedFrom(base.files, model.files) : []) {
    files.push({ path: `${base?.id}/${path}`, file: paths.file(base?.directory ?? '', path), place: name });
  }
  return Promise.all(
    [...own, ...files].map(async ({ path, file, place }) => {
      const real = await paths.real(file);
      if (real === null) throw new Error(`${path} of ${model.id} is gone`);
      const { size, mtimeMs } = await fs.stat(real);
      const name = baseName(real);
      if (BLOB_NAME.test(name)) return { path, place, real, size, hash: name };
      const key = `${real} ${size} ${mtimeMs}`;
      const hash = computed.get(key) ?? (await hashFile(real, size, '0'.repeat(64)));
      computed.set(key, hash);
      return { path, place, real, size, hash };
    }),
  );
}

/** Returns a single hash (sha256) over the paths and hashes of all source files, whatever their order. */
export function sourceHash(files: readonly SourceFile[]): string {
  const lines = files.map((file) => `${file.hash} ${file.path}\n`).sort();
  return createHash('sha256').update(lines.join('')).digest('hex');
}

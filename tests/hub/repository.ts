import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** A file as the hub's tree describes it. Large files have an LFS sha256; small ones only git's blob sha1. */
export interface HubFile {
  path: string;
  content: Buffer;
  /** Git's sha1: of the content, or for an LFS file of its pointer. */
  oid: string;
  /** sha256 of the content; null for a file that git itself stores. */
  sha256: string | null;
}

/** A model repository created by a test: files of one commit on `main`. */
export interface HubRepository {
  id: string;
  commit: string;
  files: readonly HubFile[];
  /** `gated`: metadata is public, files need a token. `private`: nothing is visible without one. */
  access: 'public' | 'gated' | 'private';
}

const gitBlobSha1 = (content: Buffer): string =>
  createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');

/** Returns the text that git stores instead of a large file (git-lfs specification, "The Pointer"). */
const lfsPointer = (sha256: string, size: number): Buffer =>
  Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${size}\n`);

/** Files at or above this size, and `.onnx` files of any size, are in LFS, as on hubs. */
const LFS_BYTES = 10_000;

function hubFile(path: string, content: Buffer): HubFile {
  if (content.length < LFS_BYTES && !/\.onnx(_data|\.data)?/.test(path)) {
    return { path, content, oid: gitBlobSha1(content), sha256: null };
  }
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { path, content, oid: gitBlobSha1(lfsPointer(sha256, content.length)), sha256 };
}

/** Creates a repository of files; the commit's hash follows from the id and the content. */
export function hubRepository(
  id: string,
  files: Readonly<Record<string, Buffer | string>>,
  access: HubRepository['access'] = 'public',
): HubRepository {
  const list = Object.entries(files).map(([path, content]) =>
    hubFile(path, typeof content === 'string' ? Buffer.from(content) : content),
  );
  const commit = createHash('sha1')
    .update(JSON.stringify([id, list.map((file) => [file.path, file.oid])]))
    .digest('hex');
  return { id, commit, files: list, access };
}

/** Creates a repository of all files of a folder but the expected answers of a fixture. */
export async function folderRepository(
  folder: string,
  id: string,
  access: HubRepository['access'] = 'public',
): Promise<HubRepository> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name !== 'golden.json');
  const contents = files.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    return [relative(folder, path).split(sep).join('/'), await readFile(path)] as const;
  });
  return hubRepository(id, Object.fromEntries(await Promise.all(contents)), access);
}

import { readdir, rmdir } from 'node:fs/promises';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { RemoveReport } from '../../lib/models/host.ts';
import { diskError } from './disk-error.ts';
import { type HeldLock, tryLock } from './lock.ts';
import { baseName, join, type StorePaths } from './paths.ts';

type Removed = RemoveReport['removed'][number];

/**
 * Removes a model's compiled files, and unless `compiledOnly` is set also its weights and lock files. The weights of
 * bundled models stay, because they are part of the program.
 *
 * @returns what was removed, and whether weights remain; null if no file of the model was on this machine
 * @throws AssayError `operation_in_progress` while another process downloads or compiles the model; `internal_error` if
 *   a file cannot be removed
 */
export async function removeModel(
  paths: StorePaths,
  model: ModelId,
  options: { compiledOnly: boolean },
): Promise<{ removed: Removed[]; weightsLeft: boolean } | null> {
  const places = [paths.repository(model), paths.compiledModel(model), paths.bundledModel(model)];
  const there = await Promise.all(places.map((place) => (place === null ? null : paths.real(place))));
  if (there.every((place) => place === null)) return null;
  const held = await takeLocks(paths, model);
  let removed: Removed[];
  try {
    removed = await removeFiles(paths, model, options.compiledOnly);
    if (!options.compiledOnly) for (const lock of held) lock.discard();
  } finally {
    for (const lock of held) lock.release();
  }
  if (!options.compiledOnly) {
    await paths.remove(paths.choice(model));
    for (const directory of [paths.compiledModel(model), paths.locks(model)]) {
      // A directory that is not empty belongs to a process that waited for its lock and now starts again.
      await rmdir(directory).catch(() => undefined);
    }
  }
  const weights = [paths.repository(model), paths.bundledModel(model)];
  const left = await Promise.all(weights.map((place) => (place === null ? null : paths.real(place))));
  return { removed, weightsLeft: left.some((place) => place !== null) };
}

async function takeLocks(paths: StorePaths, model: ModelId): Promise<HeldLock[]> {
  const held: HeldLock[] = [];
  for (const [directory, file, variable] of [
    [paths.locks(model), paths.modelLock(model), 'HF_HUB_CACHE'],
    [paths.compiledModel(model), paths.compileLock(model), 'ASSAY_HOME'],
  ] as const) {
    if ((await paths.real(directory)) === null) continue;
    try {
      const lock = tryLock(file);
      if (!lock) throw inUseElsewhere(model);
      held.push(lock);
    } catch (error) {
      for (const other of held) other.release();
      throw diskError(error, variable);
    }
  }
  return held;
}

function inUseElsewhere(model: ModelId): AssayError {
  const busy = `${model} is being downloaded or compiled by another process. Try again when it has finished.`;
  return new AssayError('operation_in_progress', busy, { param: 'model' });
}

async function removeFiles(paths: StorePaths, model: ModelId, compiledOnly: boolean): Promise<Removed[]> {
  const compiled = await removeAllBut(paths, paths.compiledModel(model), baseName(paths.compileLock(model))).catch(
    refused('ASSAY_HOME'),
  );
  const removed: Removed[] = [{ kind: 'compiled', bytes: compiled }];
  if (!compiledOnly) removed.push(...(await removeDownloaded(paths, model).catch(refused('HF_HUB_CACHE'))));
  return removed.filter(({ kind, bytes }) => bytes > 0 || kind === 'locks');
}

async function removeDownloaded(paths: StorePaths, model: ModelId): Promise<Removed[]> {
  // Snapshots are removed first, because another process must not find an incomplete model.
  const snapshots = await paths.remove(paths.snapshots(model));
  const removed: Removed[] = [{ kind: 'weights', bytes: snapshots + (await paths.remove(paths.repository(model))) }];
  const lockFiles = await readdir(paths.locks(model)).catch(() => []);
  if (lockFiles.length > 0) {
    const bytes = await removeAllBut(paths, paths.locks(model), baseName(paths.modelLock(model)));
    removed.push({ kind: 'locks', bytes });
  }
  return removed;
}

/** Returns an error handler that throws the error of a file that cannot be removed as `diskError` words it. */
function refused(variable: 'HF_HUB_CACHE' | 'ASSAY_HOME'): (error: unknown) => never {
  return (error) => {
    throw diskError(error, variable);
  };
}

async function removeAllBut(paths: StorePaths, directory: string, keep: string): Promise<number> {
  let bytes = 0;
  if ((await paths.real(directory)) === null) return 0;
  const counted = new Set<number>();
  for (const name of await readdir(directory)) {
    if (name !== keep) bytes += await paths.remove(join(directory, name), counted);
  }
  return bytes;
}

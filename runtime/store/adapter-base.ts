import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { asModelId, type ModelId } from '../../lib/model-id.ts';
import { CONFIG_BOUNDS, readBoundedJson } from './bounded-file.ts';
import { dirname, type StorePaths } from './paths.ts';

const Recorded = v.object({ base: v.string() });

/** Records the base model that a user names for an adapter, in place of the one that the adapter names. */
export async function recordAdapterBase(paths: StorePaths, adapter: ModelId, base: ModelId): Promise<void> {
  const file = paths.adapterBase(adapter);
  await paths.makeDirectory(dirname(file));
  await fs.writeFile(file, JSON.stringify({ base }));
}

/** Returns the base model that a user named for an adapter; null if none was named. */
export async function recordedBase(paths: StorePaths, adapter: ModelId): Promise<ModelId | null> {
  const parsed = v.safeParse(Recorded, await readBoundedJson(paths.adapterBase(adapter), CONFIG_BOUNDS));
  return parsed.success ? asModelId(parsed.output.base) : null;
}

import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { asModelId, type ModelId } from '../../lib/model-id.ts';
import { CONFIG_BOUNDS, readBoundedJson } from './bounded-file.ts';
import { dirname, type StorePaths } from './paths.ts';

/** Holds what a user chose for a model that its repository leaves open. */
export interface ModelChoice {
  /** Base model of an adapter, in place of the one that the adapter names. */
  base?: ModelId;
  /** GGUF file of a repository with several, or a part of its name. */
  file?: string;
}

const Recorded = v.object({ base: v.optional(v.string()), file: v.optional(v.string()) });

/** Records a choice in place of an earlier one. */
export async function recordChoice(paths: StorePaths, model: ModelId, choice: ModelChoice): Promise<void> {
  const file = paths.choice(model);
  await paths.makeDirectory(dirname(file));
  await fs.writeFile(file, JSON.stringify(choice));
}

/** Returns what a user chose for a model. */
export async function recordedChoice(paths: StorePaths, model: ModelId): Promise<ModelChoice> {
  const parsed = v.safeParse(Recorded, await readBoundedJson(paths.choice(model), CONFIG_BOUNDS));
  if (!parsed.success) return {};
  const { base, file } = parsed.output;
  const known = base === undefined ? null : asModelId(base);
  return { ...(known === null ? {} : { base: known }), ...(file === undefined ? {} : { file }) };
}

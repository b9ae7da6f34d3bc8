import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { CONTRACT_FILES } from '../store/model-files.ts';
import type { DecisionContract } from './contract.ts';
import { findDecisionContract } from './find-decision.ts';
import { type PublishedFiles, RefusedContract } from './published-files.ts';
import { MAX_TORCH_BYTES, readTorchFile } from './torch-file.ts';

/** Names of the files whose contents decide how a model is asked. */
export const CONTRACT_SETTINGS = ['config.json', ...CONTRACT_FILES].filter((name) => /\.(?:json|pt)$/u.test(name));

/**
 * Reads the small files of a model that decide how it is asked. Throws `engine_failed` for one that is too large or
 * damaged, also for a `head.pt` that holds something else.
 *
 * @param paths names of all files of the model
 * @param locate returns where the file with this name is stored; null for one that is not there yet
 */
export async function readContractFiles(
  paths: ReadonlySet<string>,
  locate: (name: string) => string | null,
): Promise<PublishedFiles> {
  const json: Record<string, unknown> = {};
  for (const name of CONTRACT_SETTINGS) {
    const file = paths.has(name) ? locate(name) : null;
    if (file === null) continue;
    json[name] = name.endsWith('.pt') ? await readTorch(file) : await readBoundedJson(file, CONFIG_BOUNDS, name);
  }
  return { paths, json };
}

async function readTorch(file: string): Promise<unknown> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    if (size > MAX_TORCH_BYTES) throw new RefusedContract('its head.pt is too large');
    return readTorchFile(await handle.readFile());
  } catch (error) {
    if (!(error instanceof RefusedContract)) throw error;
    throw new AssayError('engine_failed', `The model cannot run here: ${error.message}. Use another model.`);
  } finally {
    await handle.close();
  }
}

/** Holds a decision model's contract, or the reason why the model cannot run here; null for any other model. */
export type FoundContract = { contract: DecisionContract } | { refusal: string } | null;

/**
 * Finds the contract of a model by its files.
 *
 * @param repository id of the model's repository
 */
export function findContract(files: PublishedFiles, repository: string): FoundContract {
  try {
    const contract = findDecisionContract(files, repository);
    return contract && { contract };
  } catch (error) {
    if (error instanceof RefusedContract) return { refusal: error.message };
    throw error;
  }
}

/**
 * Finds the contract of the decision model whose files are in the folder `dir`; null for any other model. Throws
 * `engine_failed` for a decision model that cannot run here.
 *
 * @param repository id of the model's repository
 */
export async function contractInFolder(dir: string, repository: string): Promise<DecisionContract | null> {
  const files = await readContractFiles(new Set(await readdir(dir)), (name) => join(dir, name));
  const found = findContract(files, repository);
  if (!found || 'contract' in found) return found?.contract ?? null;
  throw new AssayError('engine_failed', `The model cannot run here: ${found.refusal}. Use another model.`);
}

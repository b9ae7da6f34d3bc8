import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { CONTRACT_FILES } from '../store/model-files.ts';
import { ASSAY } from './assay.ts';
import { findClef } from './clef.ts';
import { findCodeReadout } from './code-readout.ts';
import type { Contract } from './contract.ts';
import { findDecider } from './decider.ts';
import { findDecision } from './decision.ts';
import { findJevk5 } from './jevk5.ts';
import { findKev } from './kev.ts';
import { findLev } from './lev.ts';
import { findNimble } from './nimble.ts';
import { type PublishedFiles, RefusedContract } from './published-files.ts';
import { findStartlux } from './startlux.ts';
import { findStrands } from './strands.ts';
import { findTev1 } from './tev1.ts';
import { MAX_TORCH_BYTES, readTorchFile } from './torch-file.ts';
import { findWinnow } from './winnow.ts';

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
    json[name] = await readContractFile(file, name);
  }
  return { paths, json };
}

/** Reads one of these files, as `readContractFiles` does; undefined for one that is not there. */
export async function readContractFile(file: string, name: string): Promise<unknown> {
  if (!name.endsWith('.pt')) return readBoundedJson(file, CONFIG_BOUNDS, name);
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

/** Holds a model's contract, or the reason why the model cannot run here. */
export type FoundContract = { contract: Contract } | { refusal: string };

/**
 * Finds the contract of a model by its files.
 *
 * @param repository id of the model's repository
 */
export function findContract(files: PublishedFiles, repository: string): FoundContract {
  try {
    return { contract: contractFor(files, repository) };
  } catch (error) {
    if (error instanceof RefusedContract) return { refusal: error.message };
    throw error;
  }
}

/**
 * Finds the contract of the model whose files are in the folder `dir`. Throws `engine_failed` for a decision model that
 * cannot run here.
 *
 * @param repository id of the model's repository
 */
export async function contractInFolder(dir: string, repository: string): Promise<Contract> {
  const files = await readContractFiles(new Set(await readdir(dir)), (name) => join(dir, name));
  const found = findContract(files, repository);
  if ('contract' in found) return found.contract;
  throw new AssayError('engine_failed', `The model cannot run here: ${found.refusal}. Use another model.`);
}

/**
 * Finds the contract of a causal language model by its files, and by the name of its repository where the files are
 * those of any model. A model without an author's contract has Assay's.
 *
 * @throws RefusedContract if it is a decision model that cannot run here
 */
export function contractFor(files: PublishedFiles, repository: string): Contract {
  if (files.paths.has('head.pt') && files.paths.has('export.json'))
    throw new RefusedContract('it reasons in words before it answers (Jeeves), which is not supported');
  const config = files.json['config.json'];
  if (typeof config === 'object' && config !== null && 'd1_attention' in config)
    throw new RefusedContract('its config.json names d1_attention, which is not supported');
  return (
    findClef(files) ??
    findCodeReadout(files) ??
    findStartlux(files) ??
    findDecider(files) ??
    findStrands(files) ??
    findDecision(files, repository) ??
    findKev(files) ??
    findNimble(files) ??
    findLev(files) ??
    findJevk5(files) ??
    findTev1(repository) ??
    findWinnow(repository) ??
    ASSAY
  );
}

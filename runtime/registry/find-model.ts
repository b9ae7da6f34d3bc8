import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { findBase } from '../contracts/adapter.ts';
import { findContract, readContractFiles } from '../contracts/read-files.ts';
import { findLocalModel, type LocalModel } from '../store/hub-cache.ts';
import { recordedChoice } from '../store/model-choice.ts';
import type { SelectOptions } from '../store/model-files.ts';
import type { StorePaths } from '../store/paths.ts';

/**
 * Finds a model on this machine, with the base model of an adapter. Returns null if there is none, and the id of the
 * base model if only that is missing.
 *
 * @throws AssayError `engine_failed` for an adapter that cannot be used
 */
export async function findModel(
  paths: StorePaths,
  model: ModelId,
  options: SelectOptions,
): Promise<LocalModel | { lacksBase: ModelId } | null> {
  const local = await findLocalModel(paths, model, options);
  if (!local?.files.adapter) return local;
  const { support } = local.files;
  const files = await readContractFiles(new Set(Object.keys(support)), (name) => {
    const path = support[name];
    return path === undefined ? null : paths.file(local.directory, path);
  });
  const found = findContract(files, model);
  const contract = 'contract' in found ? found.contract : null;
  const named = findBase(files, contract, (await recordedChoice(paths, model)).base ?? null);
  if ('refusal' in named) throw new AssayError('engine_failed', `The model cannot run here: ${named.refusal}.`);
  const { model: id, revision } = named;
  const baseOptions = { device: options.device, base: true };
  const exact = revision === null ? null : await findLocalModel(paths, id, { ...baseOptions, revision });
  if (exact && hasTokenizer(local, exact)) return { ...local, base: exact };
  // A pull fetches the revision that the adapter names. Another tool may have fetched another one.
  const base = await findLocalModel(paths, id, baseOptions);
  if (!base || !hasTokenizer(local, base)) return { lacksBase: id };
  return { ...local, base, ...(revision === null ? {} : { missesRevision: revision }) };
}

/** Tells whether an adapter or its base model has a tokenizer. */
function hasTokenizer(...models: readonly LocalModel[]): boolean {
  return models.some(({ files }) => 'tokenizer.json' in files.support);
}

import type { ModelId } from '../../lib/model-id.ts';
import { type BaseModelId, findBase } from '../contracts/adapter.ts';
import type { Contract } from '../contracts/contract.ts';
import { encoderFiles } from '../contracts/encoder-contracts.ts';
import { CONTRACT_SETTINGS, findContract } from '../contracts/read-files.ts';
import { type ArchitectureVerdict, judgeArchitecture } from '../store/architecture.ts';
import { GENAI_CONFIG, GENAI_PROCESSORS } from '../store/genai-config.ts';
import { type FileSelection, needsGraph, type SelectOptions, selectModelFiles } from '../store/model-files.ts';
import type { HubListing } from './hub-client.ts';

/** Tells what the small files of a repository say about its model. */
export interface RepositoryVerdict extends ArchitectureVerdict {
  /** The files of the variant for a device, or what they lack. */
  selection: FileSelection;
  /** Contract of a causal language model; null for any other. */
  causal: Contract | null;
  /** Model in another repository that this one's adapter changes; null for any other. */
  base: BaseModelId | null;
}

/**
 * Judges from a repository's list of files and its small files whether its model can run here.
 *
 * @param options.named base model that a user named in place of the one that an adapter names
 * @param read returns the contents of the file at a path, whose usual name is `name`; undefined for one that is not
 *   downloaded yet
 */
export async function judgeRepository(
  model: ModelId,
  { files }: Pick<HubListing, 'files'>,
  options: SelectOptions & { named?: ModelId | undefined },
  read: (path: string, name: string) => Promise<unknown>,
): Promise<RepositoryVerdict> {
  const names = new Set(files.map(({ path }) => path));
  const configured = encoderFiles(names);
  const first = selectModelFiles(files, options);
  const { support, adapter, data } =
    'files' in first ? first.files : { support: configured, adapter: undefined, data: [] };
  const paths = new Set([...names, ...Object.keys(support)]);
  const encoder = { paths, json: await readAll(Object.entries(configured), read) };
  // The contract of an adapter's base model does not matter.
  const own = options.base ? null : judgeArchitecture({ files: encoder });
  const selection = selectModelFiles(files, { ...options, contract: own?.contract ?? null });
  const checkpoint = 'files' in selection && needsGraph(selection.files);
  if (own?.contract)
    return { ...judgeArchitecture({ files: encoder, checkpoint }), selection, causal: null, base: null };

  const pathOf = (name: string): string => support[name] ?? name;
  const settings = CONTRACT_SETTINGS.filter((name) => paths.has(name)).map((name) => [name, pathOf(name)] as const);
  const small = { paths, json: await readAll(settings, read) };
  const found = options.base ? null : findContract(small, model);
  const causal = found && 'contract' in found ? found.contract : null;
  const base = adapter && !(found && 'refusal' in found) ? findBase(small, causal, options.named ?? null) : null;
  const genai = await read(pathOf(GENAI_CONFIG), GENAI_CONFIG);
  const processors =
    genai === undefined
      ? {}
      : await readAll(
          GENAI_PROCESSORS.map((name) => [name, pathOf(name)]),
          read,
        );
  const verdict = judgeArchitecture({
    ...(options.base ? {} : { files: encoder }),
    config: await read(data.find((path) => path.endsWith('/config.json')) ?? pathOf('config.json'), 'config.json'),
    genai,
    processor: Object.values(processors)[0],
    ownHead: causal?.lastLayer !== undefined || (options.base ?? false),
    // The weights of an adapter's base model are judged when they are fetched.
    checkpoint,
  });
  const [refusal = verdict.refusal] = [found, base].flatMap((one) => (one && 'refusal' in one ? one.refusal : []));
  return { ...verdict, refusal, selection, causal, base: base && 'model' in base ? base : null };
}

/** Reads files by their names and paths; those that are not downloaded yet are absent. */
async function readAll(
  files: readonly (readonly [name: string, path: string])[],
  read: (path: string, name: string) => Promise<unknown>,
): Promise<Record<string, unknown>> {
  const all = files.map(async ([name, path]) => [name, await read(path, name)] as const);
  return Object.fromEntries((await Promise.all(all)).filter(([, value]) => value !== undefined));
}

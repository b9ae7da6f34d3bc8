import * as v from 'valibot';
import { asModelId, type ModelId } from '../../lib/model-id.ts';
import type { LoraScale } from '../checkpoint/lora.ts';
import { unusable } from '../onnx/unusable.ts';
import type { BaseModel, Contract } from './contract.ts';
import { Count, Ignored, type PublishedFiles, RefusedContract, settingsIn } from './published-files.ts';

/** Name of the file that describes an adapter (PEFT). */
export const ADAPTER_CONFIG = 'adapter_config.json';

const Positive = v.pipe(v.number(), v.finite(), v.gtValue(0));
/** Names of modules, or the ends of such names. PEFT reads them as patterns; only dots are taken as such here. */
const Module = v.pipe(v.string(), v.regex(/^\^?[\w.\\]+\$?$/u));
/** Settings of a low-rank adapter that is added to the matrices of linear layers and changes nothing else. */
const Settings = v.strictObject({
  peft_type: v.literal('LORA'),
  r: Count,
  lora_alpha: Positive,
  use_rslora: v.optional(v.boolean(), false),
  rank_pattern: v.optional(v.record(Module, Count), {}),
  alpha_pattern: v.optional(v.record(Module, Positive), {}),
  bias: v.optional(v.literal('none')),
  // Other ways to begin change the base model's weights, which the adapter's file does not contain.
  init_lora_weights: v.optional(v.union([v.boolean(), v.picklist(['gaussian', 'eva', 'orthogonal'])])),
  base_model_name_or_path: v.optional(v.nullable(v.string())),
  revision: v.optional(v.nullable(v.string())),
  layers_to_transform: v.optional(v.union([v.number(), v.array(v.number())])),
  target_modules: v.optional(v.union([v.string(), v.array(v.string())])),
  // These say how the adapter was trained.
  auto_mapping: Ignored,
  eva_config: Ignored,
  exclude_modules: Ignored,
  inference_mode: Ignored,
  layers_pattern: Ignored,
  lora_dropout: Ignored,
  megatron_core: Ignored,
  peft_version: Ignored,
  qalora_group_size: Ignored,
  task_type: Ignored,
});

/** Describes a low-rank adapter: how strongly it changes each matrix, and which model it changes if it says so. */
export interface LoraAdapter {
  scale: LoraScale;
  base: BaseModel | null;
}

/**
 * Reads `adapter_config.json`. A key that is null, false or empty is as if it were absent, since each version of PEFT
 * adds some.
 *
 * @throws RefusedContract for an adapter of another kind, or with a key that may change the numbers
 */
export function readAdapter(files: PublishedFiles): LoraAdapter {
  const config = files.json[ADAPTER_CONFIG];
  const set = typeof config === 'object' && config !== null ? Object.entries(config).filter(isSet) : null;
  const json = { [ADAPTER_CONFIG]: set ? Object.fromEntries(set) : config };
  const settings = settingsIn({ paths: files.paths, json }, ADAPTER_CONFIG, Settings);
  const { r, lora_alpha, use_rslora, alpha_pattern, rank_pattern } = settings;
  return {
    scale(module, rank) {
      checkTarget(settings, module);
      if (rank !== (valueFor(rank_pattern, module) ?? r)) {
        throw unusable(`its adapter has the rank ${rank} for ${module}, and ${ADAPTER_CONFIG} says another`);
      }
      return (valueFor(alpha_pattern, module) ?? lora_alpha) / (use_rslora ? Math.sqrt(rank) : rank);
    },
    base: settings.base_model_name_or_path
      ? { repository: settings.base_model_name_or_path, revision: settings.revision ?? null }
      : null,
  };
}

/**
 * Throws `engine_failed` for a module that the configuration leaves out: PEFT would not change it. A pattern of modules
 * is not read.
 */
function checkTarget({ target_modules, layers_to_transform }: v.InferOutput<typeof Settings>, module: string): void {
  const layer = /(?:^|\.)layers\.(\d+)\./u.exec(module)?.[1];
  const layers = [layers_to_transform ?? []].flat();
  const isNamed =
    !Array.isArray(target_modules) || target_modules.some((name) => module === name || module.endsWith(`.${name}`));
  if (isNamed && (layers.length === 0 || (layer !== undefined && layers.includes(Number(layer))))) return;
  throw unusable(`its adapter changes ${module}, which ${ADAPTER_CONFIG} leaves out`);
}

/** Identifies the model that an adapter changes. */
export interface BaseModelId {
  model: ModelId;
  /** Branch, tag or commit; null for the newest. */
  revision: string | null;
}

/**
 * Finds the model that a repository's adapter changes, or the reason why the adapter cannot be used.
 *
 * @param contract contract of the repository; null if it is not known
 * @param recorded model that a user named in place of the one that the repository names; null if none
 */
export function findBase(
  files: PublishedFiles,
  contract: Contract | null,
  recorded: ModelId | null,
): BaseModelId | { refusal: string } {
  try {
    return baseModelOf(files, contract, recorded);
  } catch (error) {
    if (error instanceof RefusedContract) return { refusal: error.message };
    throw error;
  }
}

function baseModelOf(files: PublishedFiles, contract: Contract | null, recorded: ModelId | null): BaseModelId {
  const adapter = readAdapter(files);
  const base = contract?.base ?? adapter.base;
  const model = base && asModelId(base.repository);
  if (recorded && recorded !== model) return { model: recorded, revision: null };
  if (!model) {
    const named = base ? `names ${JSON.stringify(base.repository)} as its base model, which is` : 'names';
    throw new RefusedContract(
      `its adapter ${named} no repository; name it: assay pull <base model> --adapter <this model>`,
    );
  }
  return { model, revision: base.revision };
}

/** Tells whether a key has a value that means something. */
function isSet([key, value]: [string, unknown]): boolean {
  if (key in Settings.entries) return value !== null;
  if (value === null || value === false) return false;
  return !(typeof value === 'object' && Object.keys(value).length === 0);
}

/** Returns the value of the first key that is the module's name or the end of it, from a dot on. */
function valueFor(pattern: Readonly<Record<string, number>>, module: string): number | undefined {
  for (const [key, value] of Object.entries(pattern)) {
    const whole = key.startsWith('^');
    const name = key.replace(/^\^/u, '').replace(/\$$/u, '').replaceAll('\\.', '.');
    if (module === name || (!whole && module.endsWith(`.${name}`))) return value;
  }
  return undefined;
}

import { join } from 'node:path';
import * as v from 'valibot';
import { AssayError } from '../../lib/errors.ts';
import { CONFIG_BOUNDS, type FileBounds, readBounded, readBoundedJson } from '../store/bounded-file.ts';
import { TOOL_TEMPLATE_FILE } from '../store/model-files.ts';

/** Largest token id that is accepted: eight times the size of the largest published vocabulary (Gemma 3: 262,208). */
export const MAX_TOKEN_ID = 1 << 21;

/** A special token in `tokenizer_config.json`: its text, or an object that contains the text. */
const SpecialToken = v.nullish(v.union([v.string(), v.looseObject({ content: v.string() })]));
const TokenId = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(MAX_TOKEN_ID));
const TokenIds = v.nullish(v.union([TokenId, v.array(TokenId)]));

const TokenizerJson = v.looseObject({
  model: v.looseObject({ type: v.nullish(v.string()) }),
  added_tokens: v.array(v.looseObject({ id: TokenId, content: v.string(), special: v.optional(v.boolean()) })),
  normalizer: v.nullish(v.unknown()),
  pre_tokenizer: v.nullish(v.unknown()),
  post_processor: v.nullish(v.unknown()),
  decoder: v.nullish(v.unknown()),
});
export type TokenizerJson = v.InferOutput<typeof TokenizerJson>;

const TokenizerConfig = v.looseObject({
  bos_token: SpecialToken,
  eos_token: SpecialToken,
  pad_token: SpecialToken,
  unk_token: SpecialToken,
  cls_token: SpecialToken,
  sep_token: SpecialToken,
  mask_token: SpecialToken,
  chat_template: v.nullish(v.union([v.string(), v.array(v.object({ name: v.string(), template: v.string() }))])),
});
export type TokenizerConfig = v.InferOutput<typeof TokenizerConfig>;

const ModelConfig = v.looseObject({
  eos_token_id: TokenIds,
  text_config: v.nullish(v.looseObject({ eos_token_id: TokenIds })),
});

const GenerationConfig = v.looseObject({
  eos_token_id: TokenIds,
  /** False if the model's makers recommend always choosing the most probable token. */
  do_sample: v.nullish(v.boolean()),
  temperature: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  top_p: v.nullish(v.pipe(v.number(), v.gtValue(0), v.maxValue(1))),
});

/** Holds everything that tokenizer, template and sampling need from a model's published files. */
export interface ModelText {
  tokenizer: TokenizerJson;
  tokenizerConfig: TokenizerConfig;
  /** Jinja source of the chat template; null for a model without one. */
  template: string | null;
  /** Jinja source of the template for conversations with tools; null for a model with one template for all. */
  toolTemplate: string | null;
  /** Ids of the tokens that end an answer: every `eos_token_id` of the configuration files. */
  endTokens: readonly number[];
  /**
   * Sampling parameters that the model's makers recommend; 1 where they state none, and temperature 0 if `do_sample` is
   * false.
   */
  sampling: { temperature: number; topP: number };
}

/** Bounds of `tokenizer.json`: twice the size of the largest published one (Gemma 3: 33 MB and 1.9 million members). */
const TOKENIZER_BOUNDS: FileBounds = { bytes: 64 * 1024 * 1024, parts: 4_000_000 };
/** Bounds of `tokenizer_config.json`, which may repeat the added tokens (Gemma 3: 1.2 MB) and contain the template. */
const TOKENIZER_CONFIG_BOUNDS: FileBounds = { bytes: 16 * 1024 * 1024 };
const MAX_TEMPLATE_BYTES = 4 * 1024 * 1024;

/**
 * Reads the tokenizer, template, end tokens and sampling of the model in the folder `dir`. Throws `engine_failed`, with
 * the file's name, if `tokenizer.json` is missing, or if one of the files is damaged or too large.
 */
export async function readModelText(dir: string): Promise<ModelText> {
  const tokenizer = await readJson(dir, 'tokenizer.json', TokenizerJson, TOKENIZER_BOUNDS);
  if (!tokenizer) {
    throw new AssayError(
      'engine_failed',
      'The model has no tokenizer.json, so text cannot be turned into tokens. Use a model that has one.',
    );
  }
  const tokenizerConfig =
    (await readJson(dir, 'tokenizer_config.json', TokenizerConfig, TOKENIZER_CONFIG_BOUNDS)) ?? {};
  const config = await readJson(dir, 'config.json', ModelConfig);
  const generation = await readJson(dir, 'generation_config.json', GenerationConfig);
  const genai = await readJson(
    dir,
    'genai_config.json',
    v.looseObject({ model: v.looseObject({ eos_token_id: TokenIds }) }),
  );
  const ends = [
    config?.eos_token_id,
    config?.text_config?.eos_token_id,
    generation?.eos_token_id,
    genai?.model.eos_token_id,
  ];
  return {
    tokenizer,
    tokenizerConfig,
    ...(await readTemplates(dir, tokenizerConfig)),
    endTokens: [...new Set(ends.flatMap((ids) => ids ?? []))],
    sampling: {
      temperature: generation?.do_sample === false ? 0 : (generation?.temperature ?? 1),
      topP: generation?.top_p ?? 1,
    },
  };
}

/**
 * Reads the chat templates, found in the order of transformers: separate files first, then those inside
 * `tokenizer_config.json`. Of several, transformers uses `tool_use` if there are tools, and otherwise `default`.
 */
async function readTemplates(
  dir: string,
  config: TokenizerConfig,
): Promise<Pick<ModelText, 'template' | 'toolTemplate'>> {
  const template = await readBounded(join(dir, 'chat_template.jinja'), MAX_TEMPLATE_BYTES);
  if (template !== null) {
    return { template, toolTemplate: await readBounded(join(dir, TOOL_TEMPLATE_FILE), MAX_TEMPLATE_BYTES) };
  }
  const json = await readJson(dir, 'chat_template.json', v.looseObject({ chat_template: v.string() }));
  if (json) return { template: json.chat_template, toolTemplate: null };
  const own = config.chat_template;
  if (!Array.isArray(own)) return { template: own ?? null, toolTemplate: null };
  const named = (wanted: string) => own.find(({ name }) => name === wanted)?.template;
  return { template: named('default') ?? own[0]?.template ?? null, toolTemplate: named('tool_use') ?? null };
}

async function readJson<T>(
  dir: string,
  name: string,
  schema: v.GenericSchema<unknown, T>,
  bounds = CONFIG_BOUNDS,
): Promise<T | null> {
  const value = await readBoundedJson(join(dir, name), bounds);
  if (value === undefined) return null;
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  throw new AssayError('engine_failed', `The model's ${name} is damaged. Download the model again.`, {
    cause: new v.ValiError(parsed.issues),
  });
}

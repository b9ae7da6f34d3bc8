import * as v from 'valibot';
import { property } from '../../lib/json/property.ts';
import type { ModelContract } from '../../lib/schema/model-list.ts';
import { Count, Ignored, type PublishedFiles, RefusedContract, settingsIn, Temperature } from './published-files.ts';

/**
 * Contracts of published encoder models: what an author's code fixes about the text that a model reads and the numbers
 * that it returns, with the settings from the author's files. `runtime/encoder/` implements them.
 */

const Index = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1 << 21));
const Temperatures = v.record(v.string(), Temperature);

/** One row for each question: a marker token in front of each option, and a logit for each marker. */
const Laya = v.strictObject({
  name: v.literal('laya'),
  maxTokens: Count,
  headTokens: Count,
  /** Temperatures of choice, score and noul. */
  temperature: v.tuple([Temperature, Temperature, Temperature]),
  /** Temperatures by kind and number of options: `choice:3-5`. They replace `temperature`. */
  temperatureByOptions: Temperatures,
});
const Julia = v.strictObject({ name: v.literal('julia') });
const Jevhome = v.strictObject({ name: v.literal('jevhome'), temperatureByOptions: Temperatures });
const OpenDecider = v.strictObject({
  name: v.literal('opendecider'),
  maxTokens: Count,
  special: v.strictObject({ cls: Index, sep: Index, mask: Index }),
});
const DecisionTune = v.strictObject({ name: v.literal('decision-tune'), maxTokens: Count });
/** One row for each option: the state as premise, and a hypothesis. */
const Nli = v.strictObject({
  name: v.literal('nli'),
  maxTokens: Count,
  /** Index of the logit for entailment. */
  entailment: Index,
  /** Index of the logit against it: contradiction, or anything but entailment. */
  against: Index,
  /**
   * Hypothesis for an option. `answer`: that it is the answer to the question; `plain`: the option's description, or
   * that the text is about it.
   */
  hypothesis: v.picklist(['answer', 'plain']),
  /** True if its encoder is one whose graph can be written from a checkpoint. */
  checkpoint: v.boolean(),
});
const OpenDecision = v.strictObject({
  name: v.literal('open-decision'),
  maxTokens: Count,
  choiceTemperature: Temperature,
  scoreTemperature: Temperature,
  languages: v.array(v.string()),
});
/** GLiClass: labels and text as one string. Verdict adds a label with which the model abstains. */
const Gliclass = v.strictObject({
  name: v.literal('gliclass'),
  maxTokens: Count,
  /** True if its graph can be written from a checkpoint. */
  checkpoint: v.boolean(),
});
const Verdict = v.strictObject({
  name: v.literal('verdict'),
  temperature: Temperature,
  /** Temperatures by number of labels, which replace `temperature`. */
  temperatureByLabels: Temperatures,
  checkpoint: v.boolean(),
});
/** One row for all questions of a request. */
const OpenJev = v.strictObject({
  name: v.literal('open-jev'),
  maxTokens: Count,
  stateTokens: Count,
  temperature: Temperature,
});
const Gliner2 = v.strictObject({
  name: v.literal('gliner2'),
  maxTokens: Count,
  /** Longest span in words. */
  maxWidth: v.pipe(Count, v.maxValue(64)),
  /** Graphs that can be written from its checkpoint: all, or only those that classify. */
  checkpoint: v.nullable(v.picklist(['spans', 'classes'])),
});

export const EncoderContract = v.variant('name', [
  Laya,
  Julia,
  Jevhome,
  OpenDecider,
  DecisionTune,
  Nli,
  OpenDecision,
  Gliclass,
  Verdict,
  OpenJev,
  Gliner2,
]);
export type EncoderContract = v.InferOutput<typeof EncoderContract>;
export type ContractOf<Name extends EncoderContract['name']> = Extract<EncoderContract, { name: Name }>;

/**
 * Small files of encoder models that decide how a model is asked, by the name that each has in a compiled model's
 * folder, with their paths in a repository, the first of which counts. They are fetched before the weights.
 */
export const ENCODER_FILES: Readonly<Record<string, readonly string[]>> = {
  'config.json': ['config.json', 'encoder/config.json'],
  'tokenizer_config.json': ['tokenizer_config.json', 'tokenizer/tokenizer_config.json'],
  'encoder_config.json': ['encoder_config/config.json'],
  'rl_agent_config.json': ['rl_agent_config.json'],
  'decision_config.json': ['decision_config.json'],
  'calibration_u.json': ['calibration_u.json'],
  'opendecider.json': ['opendecider.json'],
  'open_decision.json': ['open_decision.json'],
  'calibrator.json': ['calibrator.json'],
  'gliner2_config.json': ['gliner2_config.json'],
};

/** Returns the paths of the files of `ENCODER_FILES` among `paths`, by their names. */
export function encoderFiles(paths: ReadonlySet<string>): Record<string, string> {
  const found = Object.entries(ENCODER_FILES).flatMap(([name, candidates]) => {
    const path = candidates.find((candidate) => paths.has(candidate));
    return path === undefined ? [] : [[name, path] as const];
  });
  return Object.fromEntries(found);
}

/**
 * Returns the names of the graphs of a contract, in sets of which the first whose first graph is there is used. Graphs
 * after the first one may be missing.
 */
export function graphRoles({ name }: EncoderContract): readonly (readonly string[])[] {
  return name === 'gliner2'
    ? [['encoder', 'classifier', 'span_rep', 'count_embed_all', 'count_embed', 'count_pred'], ['model']]
    : [['model']];
}

/** Families whose graphs are always written from checkpoints (`graph/encoder-graph.ts`). */
const FROM_CHECKPOINT: readonly string[] = ['laya', 'decision-tune', 'open-decision'];

/** Tells whether the graph of a contract can be written from a checkpoint. */
export function writesGraph(contract: EncoderContract): boolean {
  if ('checkpoint' in contract) return Boolean(contract.checkpoint);
  return FROM_CHECKPOINT.includes(contract.name);
}

/** Token limits of the families whose files state none. */
const FIXED_TOKENS = { julia: 1024, jevhome: 512, verdict: 512 } as const;

/** Returns the most tokens of a row of a contract. */
export function rowTokens(contract: EncoderContract): number {
  return 'maxTokens' in contract ? contract.maxTokens : FIXED_TOKENS[contract.name];
}

/** Returns a contract as the API shows it. */
export function contractInfo(contract: EncoderContract): ModelContract {
  return { name: contract.name, version: null, temperature: TEMPERATURES[contract.name] };
}

const NO_TEMPERATURE = 'none: the author states no temperature';
const TEMPERATURES: Readonly<Record<EncoderContract['name'], string>> = {
  laya: 'rl_agent_config.json: temperature_by_options, temperature',
  julia: NO_TEMPERATURE,
  jevhome: 'calibration_u.json: T',
  opendecider: NO_TEMPERATURE,
  'decision-tune': NO_TEMPERATURE,
  nli: NO_TEMPERATURE,
  'open-decision': 'open_decision.json: calibration',
  gliclass: NO_TEMPERATURE,
  verdict: 'calibrator.json: per_k, temperature',
  'open-jev': 'config.json: open_jev.temperature',
  gliner2: NO_TEMPERATURE,
};

/** Token limit of other families' authors whose files state none. */
const DEFAULT_TOKENS = 512;

/**
 * Finds the contract of an encoder model by its files. Returns null if they are those of another kind of model. Throws
 * `RefusedContract` for a model of a known family that cannot run here.
 */
export function findEncoderContract(files: PublishedFiles): EncoderContract | null {
  for (const find of [laya, jevhome, openDecider, openDecision, verdict, gliner2, openJev, gliclass, nli, bare]) {
    const found = find(files);
    if (found) return found;
  }
  return null;
}

type Find = (files: PublishedFiles) => EncoderContract | null;

const LayaFile = v.strictObject({
  encoder: Ignored,
  head_layers: v.optional(Count),
  act_costs: Ignored,
  amp_dtype: Ignored,
  max_len: v.optional(Count, 512),
  head_max_len: v.optional(Count, 192),
  temperature: v.optional(v.tuple([Temperature, Temperature, Temperature]), [1, 1, 1]),
  temperature_by_options: v.optional(Temperatures, {}),
  option_layout: v.optional(v.literal('sequential')),
});

const laya: Find = (files) => {
  const name = 'rl_agent_config.json';
  const inside = property(files.json['config.json'], 'laya');
  if (!files.paths.has(name) && inside === undefined) return null;
  const own = files.paths.has(name) ? files : { ...files, json: { [name]: inside } };
  const file = settingsIn(own, name, LayaFile);
  return {
    name: 'laya',
    maxTokens: file.max_len,
    headTokens: file.head_max_len,
    temperature: file.temperature,
    temperatureByOptions: file.temperature_by_options,
  };
};

const JevhomeFile = v.strictObject({
  head: v.optional(v.literal('h2')),
  head_layers: Ignored,
  typed: Ignored,
  ordinal: Ignored,
  order_invariant: v.optional(v.literal(false)),
  evidence: v.optional(v.literal(false)),
});
const JevhomeTemperatures = v.record(v.string(), v.looseObject({ T: Temperature }));

const jevhome: Find = (files) => {
  const [settings, calibration] = ['decision_config.json', 'calibration_u.json'] as const;
  if (!files.paths.has(settings) || !files.paths.has(calibration)) return null;
  settingsIn(files, settings, JevhomeFile);
  const table = settingsIn(files, calibration, JevhomeTemperatures);
  const temperatures = Object.entries(table).map(([kind, { T }]) => [kind, T] as const);
  return { name: 'jevhome', temperatureByOptions: Object.fromEntries(temperatures) };
};

const OpenDeciderFile = v.strictObject({
  special_ids: v.strictObject({ cls: Index, sep: Index, mask: Index }),
  max_len: Count,
});

const openDecider: Find = (files) => {
  const name = 'opendecider.json';
  if (!files.paths.has(name)) return null;
  const { special_ids: special, max_len: maxTokens } = settingsIn(files, name, OpenDeciderFile);
  return { name: 'opendecider', maxTokens, special };
};

const OpenDecisionFile = v.strictObject({
  encoder_name: Ignored,
  model_id: Ignored,
  version: Ignored,
  format_version: v.literal(1),
  prompt_format: v.optional(v.literal('v1')),
  max_length: v.optional(Count, DEFAULT_TOKENS),
  score_bins: v.optional(v.literal(20)),
  head_dropout: Ignored,
  languages: v.optional(v.array(v.string()), ['en', 'fr', 'ar']),
  calibration: v.optional(
    v.strictObject({
      choice_temperature: v.optional(Temperature, 1),
      score_temperature: v.optional(Temperature, 1),
    }),
    {},
  ),
  extra: Ignored,
});

const openDecision: Find = (files) => {
  const name = 'open_decision.json';
  if (!files.paths.has(name)) return null;
  const { max_length: maxTokens, languages, calibration } = settingsIn(files, name, OpenDecisionFile);
  const { choice_temperature: choiceTemperature, score_temperature: scoreTemperature } = calibration;
  return { name: 'open-decision', maxTokens, choiceTemperature, scoreTemperature, languages };
};

const VerdictFile = v.strictObject({ temperature: v.optional(Temperature, 1), per_k: v.optional(Temperatures, {}) });

const verdict: Find = (files) => {
  const name = 'calibrator.json';
  if (!files.paths.has(name)) return null;
  checkGliclass(files);
  const { temperature, per_k: temperatureByLabels } = settingsIn(files, name, VerdictFile);
  return { name: 'verdict', temperature, temperatureByLabels, checkpoint: hasKnownHead(files) };
};

const gliclass: Find = (files) => {
  if (!architectures(files).includes('GLiClassModel')) return null;
  checkGliclass(files);
  return { name: 'gliclass', maxTokens: tokenLimit(files, 1024), checkpoint: hasKnownHead(files) };
};

/** Throws `RefusedContract` for a GLiClass model that reads its labels in another way. */
function checkGliclass({ json }: PublishedFiles): void {
  const type = property(json['config.json'], 'architecture_type');
  if (type !== undefined && type !== 'uni-encoder') {
    throw new RefusedContract(`its config.json has architecture_type ${JSON.stringify(type)}; use a uni-encoder`);
  }
  if (property(json['config.json'], 'prompt_first') === false) {
    throw new RefusedContract('its config.json has prompt_first false, and labels are read in front of the text only');
  }
}

/** Values of the settings of a GLiClass model that change its numbers, for which its graph is written. */
const GLICLASS = {
  class_token_pooling: 'first',
  embed_class_token: true,
  encoder_layer_id: -1,
  extract_text_features: false,
  layer_wise: false,
  multimodal: false,
  normalize_features: false,
  pooling_strategy: 'first',
  projector_hidden_act: 'gelu',
  recurrent_steps: 1,
  scorer_type: 'simple',
  squeeze_layers: false,
  use_calibrator: false,
  use_lstm: false,
  use_segment_embeddings: false,
} as const;

/** Tells whether a GLiClass model computes its logits in the known way. A setting that is absent has its default. */
function hasKnownHead({ json }: PublishedFiles): boolean {
  const config = json['config.json'];
  const encoder = property(property(config, 'encoder_config'), 'model_type');
  const usual = Object.entries(GLICLASS).every(([key, value]) => (property(config, key) ?? value) === value);
  return usual && (encoder === 'modernbert' || encoder === 'deberta-v2');
}

const gliner2: Find = (files) => {
  const config = files.json['config.json'];
  // The first checkpoints name no architecture, and their class as "extractor".
  const architecture =
    property(config, 'architecture') ?? (property(config, 'model_type') === 'extractor' ? 'span' : '');
  if (!files.paths.has('gliner2_config.json') && architecture !== 'span' && architecture !== 'boundary') return null;
  const pooling = property(config, 'token_pooling');
  if (pooling !== undefined && pooling !== 'first') {
    throw new RefusedContract(
      `its config.json has token_pooling ${JSON.stringify(pooling)}, and only first is supported`,
    );
  }
  const widths = [
    property(files.json['gliner2_config.json'], 'max_width'),
    property(property(config, 'span_head'), 'max_width'),
    property(config, 'max_width'),
  ];
  const stated = property(config, 'max_len');
  return {
    name: 'gliner2',
    maxTokens: isCount(stated) ? stated : tokenLimit({ ...files, json: { ...files.json, 'config.json': {} } }),
    maxWidth: Math.min(widths.find(isCount) ?? 8, 64),
    checkpoint: checkpointOf(files, architecture),
  };
};

/** Counters of GLiNER2 whose graphs can be written; a checkpoint that names none has the first. */
const COUNTERS: readonly unknown[] = [undefined, null, 'count_lstm', 'count_lstm_v2', 'count_lstm_moe'];

/** Tells which graphs can be written from a checkpoint of GLiNER2: spans need a known counter. */
function checkpointOf({ json }: PublishedFiles, architecture: unknown): 'spans' | 'classes' | null {
  const isKnown = property(json['encoder_config.json'], 'model_type') === 'deberta-v2';
  if (!isKnown || architecture !== 'span') return null;
  return COUNTERS.includes(property(json['config.json'], 'counting_layer')) ? 'spans' : 'classes';
}

const OpenJevMember = v.strictObject({
  max_len: v.optional(Count, 512),
  max_state_tokens: v.optional(Count, 256),
  temperature: v.optional(Temperature, 1.05),
});

const openJev: Find = (files) => {
  const value = property(files.json['config.json'], 'open_jev');
  if (value === undefined) return null;
  const name = 'open_jev of config.json';
  const file = settingsIn({ ...files, json: { [name]: value } }, name, OpenJevMember);
  return {
    name: 'open-jev',
    maxTokens: file.max_len,
    stateTokens: file.max_state_tokens,
    temperature: file.temperature,
  };
};

/** Finds cross-encoders for natural language inference: one of their labels begins with "entail". */
const nli: Find = (files) => {
  if (!architectures(files).some((name) => name.endsWith('ForSequenceClassification'))) return null;
  const config = files.json['config.json'];
  const labels = Object.entries(property(config, 'id2label') ?? {}).map(([id, label]) => ({
    id: Number(id),
    label: String(label).toLowerCase(),
  }));
  const labelled = (...starts: string[]) =>
    starts.flatMap((start) => labels.find(({ label }) => label.startsWith(start)) ?? [])[0];
  const entailment = labelled('entail');
  if (!entailment) return null;
  const against = labelled('contradict', 'not');
  if (labels.length > 3 || !against) {
    throw new RefusedContract('the labels in its config.json must be entailment and contradiction or not_entailment');
  }
  const encoder = property(config, 'model_type');
  return {
    name: 'nli',
    maxTokens: tokenLimit(files),
    entailment: entailment.id,
    against: against.id,
    // The hypotheses that Ollaya found best for the published zero-shot models of each encoder.
    hypothesis: encoder === 'modernbert' ? 'plain' : 'answer',
    checkpoint: encoder === 'modernbert' || encoder === 'deberta-v2',
  };
};

/**
 * Finds the two families whose repositories have no file that names them: encoders with a head in the graph
 * (`head.safetensors` beside it for DecisionTune). They are told apart by the token that marks options.
 */
const bare: Find = (files) => {
  const head = files.paths.has('head.safetensors');
  const config = files.json['config.json'];
  if (property(config, 'model_type') !== 'modernbert' || (architectures(files).length > 0 && !head)) return null;
  const mask = property(files.json['tokenizer_config.json'], 'mask_token');
  if (!head && (mask === '<mask>' || property(mask, 'content') === '<mask>')) return { name: 'julia' };
  return { name: 'decision-tune', maxTokens: tokenLimit({ ...files, json: { 'config.json': config } }) };
};

/**
 * Returns the limit that a model's configuration states: its positions, or what its tokenizer allows if that is less.
 */
function tokenLimit({ json }: PublishedFiles, otherwise = DEFAULT_TOKENS): number {
  const config = json['config.json'];
  const limits = [
    property(config, 'max_position_embeddings'),
    property(property(config, 'encoder_config'), 'max_position_embeddings'),
    property(json['tokenizer_config.json'], 'model_max_length'),
  ].filter(isCount);
  return limits.length > 0 ? Math.min(...limits) : otherwise;
}

/** Tells whether a value is a whole number above 0. Some tokenizers state 1e30 for no limit. */
function isCount(value: unknown): value is number {
  return v.is(Count, value);
}

function architectures({ json }: PublishedFiles): string[] {
  const names = property(json['config.json'], 'architectures');
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

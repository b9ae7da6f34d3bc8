import { ConfigKeys, Refused } from './config-keys.ts';

/** Holds the rotary positions of a layer: the angle of pair i at position p is `p * inverse[i]`. */
export interface Rotary {
  inverse: Float32Array;
  /** Factor of all cosines and sines. */
  scale: number;
  /** Number of positions up to which these frequencies hold; absent: all. */
  until?: number;
  /** True if cosines and sines are rounded to 16 bits, as in a published graph whose tables are. */
  half?: boolean;
}

/** Describes what the rotary positions of a family depend on besides the configuration. */
export interface RotaryOptions {
  headSize: number;
  /** `max_position_embeddings` */
  context: number;
  /** Longest prompt, by which LongRoPE's frequencies are chosen. */
  maxPromptLen: number;
  /** Base of the frequencies if the configuration states none. */
  theta: number;
  /** True for families that can rotate a part of each head. */
  partial: boolean;
  /** Names of LongRoPE in old configurations of the family. */
  longRope: readonly string[];
  /** Parameters that the family reads itself. */
  others: readonly string[];
  /** True if the parameters are those of one kind of layer, and so in an object of their own. */
  nested: boolean;
}

/** Keys of rotary parameters that a scaling which does not use them ignores, as transformers does. */
const PARAMETERS = [
  ...['rope_type', 'type', 'rope_theta', 'partial_rotary_factor', 'factor', 'original_max_position_embeddings'],
  ...[
    'attention_factor',
    'beta_fast',
    'beta_slow',
    'mscale',
    'mscale_all_dim',
    'truncate',
    'short_factor',
    'long_factor',
  ],
  ...['low_freq_factor', 'high_freq_factor', 'max_position_embeddings'],
  // Text has the same position in all three parts.
  ...['mrope_section', 'mrope_interleaved'],
];

/**
 * Returns the frequencies that rotary parameters describe, computed in 32-bit floats as transformers does
 * (`modeling_rope_utils.py`).
 */
export function readRotary(parameters: ConfigKeys, options: RotaryOptions): Rotary {
  const rotary = frequencies(parameters, options);
  if (![...rotary.inverse, rotary.scale].every(Number.isFinite)) {
    throw new Refused('config.json has rotary parameters that give no finite angles');
  }
  return rotary;
}

function frequencies(parameters: ConfigKeys, options: RotaryOptions): Rotary {
  const { headSize, context, partial } = options;
  parameters.ignore([...PARAMETERS, ...options.others]);
  parameters.end();
  const named = parameters.text('rope_type', null) ?? parameters.text('type', 'default');
  const type = options.longRope.includes(named) ? 'longrope' : named;
  const theta = positive(parameters, 'rope_theta', options.theta);
  const part = positive(parameters, 'partial_rotary_factor', 1);
  const first = parameters.size('original_max_position_embeddings', context);
  if (!partial && type !== 'proportional' && part !== 1) throw parameters.refusal('partial_rotary_factor');
  const width = type === 'proportional' ? headSize : Math.floor(headSize * part);
  if (width % 2 !== 0 || width > headSize || width === 0) {
    throw parameters.refusal(
      'partial_rotary_factor',
      `which is not a whole number of pairs of the ${headSize} elements of a head`,
    );
  }
  const base = Array.from({ length: width / 2 }, (_, pair) => Math.fround(theta ** Math.fround((2 * pair) / width)));
  const inverse = Float32Array.from(base, (power) => 1 / power);
  if (type === 'default') return { inverse, scale: 1 };
  if (type === 'proportional') {
    const rotated = Math.floor((part * headSize) / 2);
    const factor = positive(parameters, 'factor', 1);
    return { inverse: inverse.map((value, pair) => (pair < rotated ? value / factor : 0)), scale: 1 };
  }
  if (type === 'longrope') return longRope(parameters, base, first, options);
  const factor = positive(parameters, 'factor');
  if (type === 'linear') return { inverse: inverse.map((value) => value / factor), scale: 1 };
  if (type === 'llama3') return { inverse: llama3(parameters, inverse, factor, first), scale: 1 };
  if (type === 'yarn') return yarn(parameters, base, factor, theta, first, options);
  throw parameters.refusal(
    parameters.has('rope_type') ? 'rope_type' : 'type',
    'which is not a scaling that is computed here',
  );
}

/** Returns a positive number of the parameters. */
function positive(parameters: ConfigKeys, key: string, fallback?: number): number {
  const value = fallback === undefined ? parameters.number(key) : parameters.number(key, fallback);
  if (!(value > 0)) throw parameters.refusal(key, 'which is not positive');
  return value;
}

function llama3(parameters: ConfigKeys, inverse: Float32Array, factor: number, first: number): Float32Array {
  const [low, high] = [positive(parameters, 'low_freq_factor'), positive(parameters, 'high_freq_factor')];
  if (!(low < high)) throw parameters.refusal('low_freq_factor', 'which is not below high_freq_factor');
  return inverse.map((value) => {
    const length = (2 * Math.PI) / value;
    if (length < first / high) return value;
    if (length > first / low) return value / factor;
    const smooth = (first / length - low) / (high - low);
    return ((1 - smooth) * value) / factor + smooth * value;
  });
}

function yarn(
  parameters: ConfigKeys,
  base: readonly number[],
  factor: number,
  theta: number,
  first: number,
  { nested }: RotaryOptions,
): Rotary {
  const width = 2 * base.length;
  const [fast, slow] = [positive(parameters, 'beta_fast', 32), positive(parameters, 'beta_slow', 1)];
  const truncate = parameters.flag('truncate', true);
  // transformers looks for it in the outer object, and so never finds it.
  if (nested && !truncate) throw parameters.refusal('truncate');
  const pairOf = (rotations: number) => (width * Math.log(first / (rotations * 2 * Math.PI))) / (2 * Math.log(theta));
  const [from, to] = truncate ? [Math.floor(pairOf(fast)), Math.ceil(pairOf(slow))] : [pairOf(fast), pairOf(slow)];
  const low = Math.max(from, 0);
  const high = Math.min(to, width - 1);
  const span = low === high ? 0.001 : high - low;
  const inverse = Float32Array.from(base, (power, pair) => {
    const ramp = Math.fround(Math.min(1, Math.max(0, (pair - low) / span)));
    const kept = Math.fround(1 - ramp);
    return Math.fround(1 / Math.fround(factor * power)) * Math.fround(1 - kept) + Math.fround(1 / power) * kept;
  });
  const [mscale, all] = [parameters.number('mscale', 0), parameters.number('mscale_all_dim', 0)];
  const magnitude = (weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  const scale = mscale && all ? magnitude(mscale) / magnitude(all) : magnitude(1);
  return { inverse, scale: parameters.number('attention_factor', scale) };
}

/**
 * Returns the frequencies for short texts if prompts of `maxPromptLen` tokens are short, which limits the model to
 * short texts; otherwise those for long texts. transformers changes them as a text grows, and with them all keys.
 */
function longRope(
  parameters: ConfigKeys,
  base: readonly number[],
  first: number,
  { context, maxPromptLen }: RotaryOptions,
): Rotary {
  const short = maxPromptLen <= first;
  const key = short ? 'short_factor' : 'long_factor';
  const factors = parameters.list<number>(key, 'number', base.length);
  if (!factors?.every((factor) => factor > 0)) throw parameters.refusal(key, 'which is not a list of positive numbers');
  const inverse = Float32Array.from(base, (power, pair) => 1 / Math.fround(Math.fround(factors[pair] ?? 1) * power));
  const factor = positive(parameters, 'factor', context / first);
  const scale = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(first));
  return { inverse, scale: parameters.number('attention_factor', scale), ...(short ? { until: first } : {}) };
}

/**
 * Returns the rotary parameters of all layers. Configurations before transformers 5 have them in `rope_scaling`, and
 * some beside it.
 */
export function rotaryParameters(config: ConfigKeys): ConfigKeys {
  const [old, current] = [members(config, 'rope_scaling'), members(config, 'rope_parameters')];
  const first = config.value('original_max_position_embeddings');
  const values = {
    ...present({
      rope_theta: config.value('rope_theta'),
      partial_rotary_factor: config.value('partial_rotary_factor'),
    }),
    ...(old ?? current),
    ...present({ original_max_position_embeddings: first }),
  };
  return new ConfigKeys(values, {}, old ? 'rope_scaling.' : 'rope_parameters.');
}

/** Kinds of layers that have rotary parameters of their own in some families. */
export const ROTARY_KINDS = ['full_attention', 'sliding_attention'] as const;
export type RotaryKind = (typeof ROTARY_KINDS)[number];

/**
 * Returns the rotary parameters of one kind of layers, for families in which kinds differ. Configurations before
 * transformers 5 have a scaling for full attention only, and each base in a key of its own.
 *
 * @param oldBase key of the base of this kind in such a configuration
 */
export function rotaryParametersOf(config: ConfigKeys, kind: RotaryKind, oldBase: string): ConfigKeys {
  const [old, current] = [members(config, 'rope_scaling'), members(config, 'rope_parameters') ?? {}];
  const strange = Object.keys(current).find((key) => !ROTARY_KINDS.some((known) => known === key));
  if (strange !== undefined) {
    throw new Refused(`config.json says rope_parameters.${strange}, where parameters of kinds of layers are expected`);
  }
  const own: unknown = current[kind];
  const values = {
    ...present({ rope_theta: config.value(oldBase), partial_rotary_factor: config.value('partial_rotary_factor') }),
    ...(typeof own === 'object' ? own : {}),
    ...(kind === 'full_attention' ? old : {}),
  };
  return new ConfigKeys(values, {}, `rope_parameters.${kind}.`);
}

function members(config: ConfigKeys, key: string): Readonly<Record<string, unknown>> | undefined {
  const value = config.value(key);
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw config.refusal(key, 'which is no object');
  // A cast: the line before has checked that it is an object.
  return value as Readonly<Record<string, unknown>>;
}

function present(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

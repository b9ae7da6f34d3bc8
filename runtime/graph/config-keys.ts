/** Reports why a model's configuration is not one that graphs are written for; the message completes "…: <why>". */
export class Refused extends Error {}

/** Largest size that a configuration may state: of a vocabulary, of a layer, of a context. */
const LARGEST = 1 << 24;

/** Keys of `config.json` that change nothing in what a decoder computes from tokens. */
const NEUTRAL: ReadonlySet<string> = new Set([
  ...[
    '_name_or_path',
    '_attn_implementation_autoset',
    'architectures',
    'auto_map',
    'model_type',
    'transformers_version',
  ],
  ...['dtype', 'torch_dtype', 'use_cache', 'cache_implementation', 'pretraining_tp', 'transformers.js_config'],
  // Training, and what is randomly set to zero in it.
  ...[
    'initializer_range',
    'attention_dropout',
    'hidden_dropout',
    'resid_pdrop',
    'embd_pdrop',
    'gradient_checkpointing',
  ],
  ...['router_aux_loss_coef', 'output_router_logits', 'router_jitter_noise', 'initializer_std', 'init_method'],
  // Tokens and text, which the tokenizer and the sampler know.
  ...['bos_token_id', 'eos_token_id', 'pad_token_id', 'sep_token_id', 'unk_token_id', 'bos_token', 'eos_token'],
  ...['temperature', 'top_k', 'top_p', 'do_sample', 'repetition_penalty', 'max_length', 'min_length', 'max_new_tokens'],
  ...['num_beams', 'length_penalty', 'no_repeat_ngram_size', 'suppress_tokens', 'begin_suppress_tokens'],
  ...['forced_bos_token_id', 'forced_eos_token_id', 'decoder_start_token_id', 'prefix', 'task_specific_params'],
  ...['bad_words_ids', 'diversity_penalty', 'early_stopping', 'encoder_no_repeat_ngram_size', 'num_beam_groups'],
  ...['num_return_sequences', 'remove_invalid_values', 'typical_p', 'exponential_decay_length_penalty'],
  // What a run returns besides logits, and labels of other tasks.
  ...['output_attentions', 'output_hidden_states', 'output_scores', 'return_dict', 'return_dict_in_generate'],
  ...['id2label', 'label2id', 'num_labels', 'problem_type', 'finetuning_task', 'tokenizer_class', 'torchscript'],
  ...['is_decoder', 'pruned_heads', 'tf_legacy_loss', 'use_bfloat16'],
  ...['chunk_size_feed_forward', 'tie_encoder_decoder', 'unsloth_fixed', 'unsloth_version', 'tie_last_hidden_states'],
]);

/**
 * Reads a parsed `config.json` key by key. A key that nobody has read or allowed at the end refuses the model, because
 * it may change its numbers. A value of null counts as absent.
 */
export class ConfigKeys {
  readonly #values: Readonly<Record<string, unknown>>;
  /** Path of this object in the file, with a point at its end; empty for the file itself. */
  readonly #path: string;
  readonly #file: string;
  readonly #read = new Set<string>();

  /** @param defaults values of the model's class, which transformers leaves out of the file */
  constructor(values: object, defaults: Readonly<Record<string, unknown>> = {}, path = '', file = 'config.json') {
    this.#values = { ...defaults, ...values };
    this.#path = path;
    this.#file = file;
  }

  /** Returns the value of a key; undefined if it is absent or null. */
  value(key: string): unknown {
    this.#read.add(key);
    return Object.hasOwn(this.#values, key) ? (this.#values[key] ?? undefined) : undefined;
  }

  /** Returns a finite number, or `fallback` if the key is absent. */
  number<T = never>(key: string, ...fallback: [] | [T]): number | T {
    const value = this.value(key);
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    return this.#absent(key, value, 'a number', fallback);
  }

  /** Returns a positive whole number, or `fallback` if the key is absent. */
  size<T = never>(key: string, ...fallback: [] | [T]): number | T {
    const value = this.value(key);
    if (Number.isInteger(value) && Number(value) > 0 && Number(value) <= LARGEST) return Number(value);
    return this.#absent(key, value, 'a positive whole number', fallback);
  }

  /** Returns a string, or `fallback` if the key is absent. */
  text<T = never>(key: string, ...fallback: [] | [T]): string | T {
    const value = this.value(key);
    return typeof value === 'string' ? value : this.#absent(key, value, 'a string', fallback);
  }

  /** Returns a boolean, or `fallback` if the key is absent. */
  flag(key: string, fallback: boolean): boolean {
    const value = this.value(key);
    return typeof value === 'boolean' ? value : this.#absent(key, value, 'true or false', [fallback]);
  }

  /** Returns a list of `length` numbers or strings; undefined if the key is absent. */
  list<T extends number | string>(key: string, type: 'number' | 'string', length: number): T[] | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (!Array.isArray(value) || value.length !== length || value.some((item) => typeof item !== type)) {
      throw this.refusal(key, `which is not a list of ${length} ${type}s`);
    }
    return value;
  }

  /** Throws unless each of these keys is absent or has one of the values. */
  only(allowed: Readonly<Record<string, readonly unknown[]>>): void {
    for (const [key, values] of Object.entries(allowed)) {
      const value = this.value(key);
      if (value !== undefined && !values.includes(value)) throw this.refusal(key);
    }
  }

  /** Allows keys whatever their values, because the model's class ignores them. */
  ignore(keys: readonly string[]): void {
    for (const key of keys) this.#read.add(key);
  }

  /** Tells whether a key is present and not null, without counting it as read. */
  has(key: string): boolean {
    return Object.hasOwn(this.#values, key) && this.#values[key] !== null;
  }

  /** Throws for the first key that was neither read nor allowed. */
  end(): void {
    for (const key of Object.keys(this.#values)) {
      if (this.#read.has(key) || (this.#path === '' && NEUTRAL.has(key)) || this.#values[key] === null) continue;
      throw this.refusal(key);
    }
  }

  /** Returns the refusal for the value of a key. */
  refusal(key: string, why = 'which is not known to leave its numbers as they are computed here'): Refused {
    const text = JSON.stringify(this.#values[key]) ?? 'nothing';
    return new Refused(
      `${this.#file} says ${this.#path}${key}: ${text.length > 80 ? `${text.slice(0, 80)}…` : text}, ${why}`,
    );
  }

  #absent<T>(key: string, value: unknown, what: string, fallback: [] | [T]): T {
    if (value !== undefined) throw this.refusal(key, `which is not ${what}`);
    if (fallback.length === 0) throw new Refused(`${this.#file} does not say ${this.#path}${key}`);
    return fallback[0];
  }
}

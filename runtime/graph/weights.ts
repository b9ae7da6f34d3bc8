import type { StoredTensor, WeightSource } from '../checkpoint/weight-source.ts';
import { unusable } from '../onnx/unusable.ts';

/** Begins the names of the text model: alone, without its head, or in a model with images or audio. */
const PREFIXES = [
  ...['model.', '', 'model.language_model.', 'language_model.model.', 'language_model.', 'model.text_model.'],
];
/** Names of an output head, which is beside the text model. */
const HEADS = ['lm_head.weight', 'language_model.lm_head.weight', 'model.lm_head.weight'];

/** Matches weights that the graph of a text model leaves out: constants that it computes itself, and other parts. */
const OTHER_PARTS = [
  /(?:^|\.)rotary_emb\.(?:inv_freq|cos_cached|sin_cached)$/u,
  /^(?:model\.)?(?:vision_tower|vision_model|visual|multi_modal_projector|embed_vision)\./u,
  /^(?:model\.)?(?:audio_tower|embed_audio)\./u,
  // Layers that guess several tokens at once, which transformers leaves out, too.
  /^mtp\./u,
];

/** Finds the weights of a text model in a checkpoint, and remembers which it has given. */
export class Weights {
  readonly #source: WeightSource;
  readonly #prefix: string;
  readonly #given = new Set<string>();

  /** @param embedding name of the embeddings within the text model */
  constructor(source: WeightSource, embedding: string) {
    this.#source = source;
    const prefix = PREFIXES.find((one) => source.has(`${one}${embedding}.weight`));
    if (prefix === undefined) throw unusable(`its checkpoint has no weight "model.${embedding}.weight"`);
    this.#prefix = prefix;
  }

  /** Returns a weight of the text model. Throws `engine_failed` if it is missing or has other dimensions. */
  get(name: string, ...dims: number[]): StoredTensor {
    const path = `${this.#prefix}${name}`;
    const stored = this.#source.get(path);
    if (!stored) throw unusable(`its checkpoint lacks the weight "${path}", which its configuration needs`);
    return this.#give(stored, dims);
  }

  /** Returns the weight with that name, or undefined if `has` is false. */
  optional(has: boolean, name: string, ...dims: number[]): StoredTensor | undefined {
    return has ? this.get(name, ...dims) : undefined;
  }

  /** Tells whether the text model has a weight of that name. */
  has(name: string): boolean {
    return this.#source.has(`${this.#prefix}${name}`);
  }

  /** Counts weights as given whose names begin like this, because the model has them and does not use them. */
  skip(...prefixes: readonly string[]): void {
    for (const name of this.#source.keys()) {
      if (prefixes.some((prefix) => name.startsWith(`${this.#prefix}${prefix}.`))) this.#given.add(name);
    }
  }

  /** Returns the output head; undefined if the checkpoint has none. */
  head(...dims: number[]): StoredTensor | undefined {
    const stored = HEADS.map((name) => this.#source.get(name)).find((found) => found !== undefined);
    return stored && this.#give(stored, dims);
  }

  /**
   * Throws `engine_failed` if the checkpoint has a weight that was not given and is not known to belong to another
   * part: the graph would not be the model that was published.
   */
  checkAllGiven(): void {
    const left = [...this.#source.keys()].filter(
      (name) => !this.#given.has(name) && !OTHER_PARTS.some((pattern) => pattern.test(name)),
    );
    if (left.length === 0) return;
    const more = left.length > 1 ? ` and ${left.length - 1} more` : '';
    throw unusable(`its checkpoint has the weight "${left[0]}"${more}, which its configuration does not explain`);
  }

  #give(stored: StoredTensor, dims: readonly number[]): StoredTensor {
    if (stored.dims.length !== dims.length || stored.dims.some((dim, axis) => dim !== dims[axis])) {
      const [is, wanted] = [stored.dims, dims].map((list) => list.join('×'));
      throw unusable(`the weight "${stored.name}" has the dimensions ${is}, and its configuration needs ${wanted}`);
    }
    this.#given.add(stored.name);
    return stored;
  }
}

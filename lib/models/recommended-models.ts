/** Names a use for which a model is recommended. Models too small to decide or extract well have only `chat`. */
export type Use = 'decisions' | 'extraction' | 'chat';

/** Gives a result of a public benchmark, as the model's makers publish it. It was not measured here. */
export interface PublishedRow {
  benchmark: string;
  result: string;
}

/** Describes a published model by the facts in its model card and configuration. */
export interface RecommendedModel {
  /** Name of the repository with the ONNX files on the Hugging Face hub, which is also the model id. */
  id: string;
  /** Address of the model card that states licence, languages and context length. */
  source: string;
  licence: string;
  /** Languages of the model as BCP 47 tags, or their number if the model card states only that. */
  languages: readonly string[] | number;
  modalities: readonly ('text' | 'image')[];
  /** Context length: maximum number of tokens of prompt and answer together. */
  context: number;
  uses: readonly Use[];
  /** Family of a decision model, which only answers questions with options (docs/decision-models.md). */
  family?: string;
  /** Results that its makers publish; absent if they name none that are compared widely. */
  rows?: readonly PublishedRow[];
  /** True if the weights are published in 16 bits, without a 4-bit copy. */
  half?: true;
  /** Number of all parameters, with those of the embedding matrix. */
  parameters: number;
  /** Number of parameters of the embedding matrix, which 4-bit model files store as floats. */
  embedding: number;
  /** Shape of the KV cache: layers, key-value heads of each layer, and values of each head for one token. */
  kv: { layers: number; heads: number; headSize: number };
}

const ALL: readonly Use[] = ['decisions', 'extraction', 'chat'];
const TEXT = ['text'] as const;
const card = (id: string) => `https://huggingface.co/${id}`;

const DECISIONS = { modalities: TEXT, uses: ['decisions'], half: true } as const;
const APACHE = 'Apache-2.0';
const NON_COMMERCIAL = 'CC BY-NC 4.0';
const ENGLISH = ['en'] as const;
const INDEX = 'Decision Index 0.2.1';

/**
 * Published models to start with: decision models first, then models for all uses, each time the one likely to be best
 * first, and those for any use before those for non-commercial use. The order follows size, age and the publishers'
 * benchmarks, not our own measurements. `assay models --check` compares this list with the hub.
 */
export const RECOMMENDED_MODELS: readonly RecommendedModel[] = [
  {
    ...DECISIONS,
    id: 'Mapika/decider-4b',
    source: card('Mapika/decider-4b'),
    family: 'decider',
    licence: APACHE,
    languages: ENGLISH,
    context: 36_864,
    parameters: 4_200_000_000,
    embedding: 248_320 * 2560,
    kv: { layers: 8, heads: 4, headSize: 256 },
  },
  {
    ...DECISIONS,
    id: 'Mapika/decider-2b',
    source: card('Mapika/decider-2b'),
    family: 'decider',
    licence: APACHE,
    languages: ENGLISH,
    context: 36_864,
    parameters: 1_890_000_000,
    embedding: 248_320 * 2048,
    kv: { layers: 6, heads: 2, headSize: 256 },
  },
  {
    ...DECISIONS,
    id: 'Mapika/decider-0.8b',
    source: card('Mapika/decider-0.8b'),
    family: 'decider',
    licence: APACHE,
    languages: ENGLISH,
    context: 36_864,
    parameters: 800_000_000,
    embedding: 248_320 * 1024,
    kv: { layers: 6, heads: 2, headSize: 256 },
  },
  {
    ...DECISIONS,
    id: 'startlux-models/StartLux-Decision-v1-4B',
    source: card('startlux-models/StartLux-Decision-v1-4B'),
    family: 'startlux',
    licence: NON_COMMERCIAL,
    languages: ENGLISH,
    context: 262_144,
    rows: [{ benchmark: INDEX, result: '52.75' }],
    parameters: 4_500_000_000,
    embedding: 248_320 * 2560,
    kv: { layers: 8, heads: 4, headSize: 256 },
  },
  {
    ...DECISIONS,
    id: 'startlux-models/StartLux-Decision-v1-2B',
    source: card('startlux-models/StartLux-Decision-v1-2B'),
    family: 'startlux',
    licence: NON_COMMERCIAL,
    languages: ENGLISH,
    context: 262_144,
    rows: [{ benchmark: INDEX, result: '44.19' }],
    parameters: 2_300_000_000,
    embedding: 248_320 * 2048,
    kv: { layers: 6, heads: 2, headSize: 256 },
  },
  {
    id: 'onnx-community/Qwen3-4B-Instruct-2507-ONNX',
    source: card('Qwen/Qwen3-4B-Instruct-2507'),
    licence: 'Apache-2.0',
    languages: 119,
    modalities: TEXT,
    context: 262_144,
    uses: ALL,
    parameters: 4_022_468_096,
    embedding: 151_936 * 2560,
    kv: { layers: 36, heads: 8, headSize: 128 },
  },
  {
    id: 'HuggingFaceTB/SmolLM3-3B-ONNX',
    source: card('HuggingFaceTB/SmolLM3-3B'),
    licence: 'Apache-2.0',
    languages: ['en', 'fr', 'es', 'de', 'it', 'pt'],
    modalities: TEXT,
    context: 65_536,
    uses: ALL,
    parameters: 3_080_000_000,
    embedding: 128_256 * 2048,
    kv: { layers: 36, heads: 4, headSize: 128 },
  },
  {
    id: 'onnx-community/Qwen3-1.7B-ONNX',
    source: card('Qwen/Qwen3-1.7B'),
    licence: 'Apache-2.0',
    languages: 119,
    modalities: TEXT,
    context: 32_768,
    uses: ALL,
    parameters: 1_720_000_000,
    embedding: 151_936 * 2048,
    kv: { layers: 28, heads: 8, headSize: 128 },
  },
  {
    id: 'onnx-community/Llama-3.2-1B-Instruct-ONNX',
    source: card('meta-llama/Llama-3.2-1B-Instruct'),
    licence: 'Llama 3.2 Community License',
    languages: ['en', 'de', 'fr', 'it', 'pt', 'hi', 'es', 'th'],
    modalities: TEXT,
    context: 131_072,
    uses: ALL,
    parameters: 1_236_000_000,
    embedding: 128_256 * 2048,
    kv: { layers: 16, heads: 8, headSize: 64 },
  },
  {
    id: 'onnx-community/gemma-3-1b-it-ONNX',
    source: card('google/gemma-3-1b-it'),
    licence: 'Gemma Terms of Use',
    languages: ['en'],
    modalities: TEXT,
    context: 32_768,
    uses: ALL,
    parameters: 1_000_000_000,
    embedding: 262_144 * 1152,
    kv: { layers: 26, heads: 1, headSize: 256 },
  },
  {
    id: 'onnx-community/Qwen3-0.6B-ONNX',
    source: card('Qwen/Qwen3-0.6B'),
    licence: 'Apache-2.0',
    languages: 119,
    modalities: TEXT,
    context: 32_768,
    uses: ALL,
    parameters: 595_776_512,
    embedding: 151_936 * 1024,
    kv: { layers: 28, heads: 8, headSize: 128 },
  },
  {
    id: 'onnx-community/Qwen2.5-0.5B-Instruct',
    source: card('Qwen/Qwen2.5-0.5B-Instruct'),
    licence: 'Apache-2.0',
    languages: 29,
    modalities: TEXT,
    context: 32_768,
    uses: ALL,
    parameters: 494_000_000,
    embedding: 151_936 * 896,
    kv: { layers: 24, heads: 2, headSize: 64 },
  },
  {
    id: 'HuggingFaceTB/SmolLM2-360M-Instruct',
    source: card('HuggingFaceTB/SmolLM2-360M-Instruct'),
    licence: 'Apache-2.0',
    languages: ['en'],
    modalities: TEXT,
    context: 8192,
    uses: ['chat'],
    parameters: 362_000_000,
    embedding: 49_152 * 960,
    kv: { layers: 32, heads: 5, headSize: 64 },
  },
];

/** Prompt length in tokens for which memory is estimated: the default of the flag `--max-prompt-len`. */
const PROMPT_TOKENS = 4096;
/** Bytes per 4-bit weight, including its share of the scale of its block of 32. */
const Q4_BYTES = 0.5625;
/**
 * Largest share of the machine's memory that a recommended model needs; with a larger model, inference on a CPU is
 * slow.
 */
const COMFORTABLE = 1 / 8;
/** Largest share of the machine's memory that a model may need to count as fitting. */
const FITS = 0.7;

/**
 * Estimates the number of bytes that `assay pull` downloads for a CPU: all weights in 4 bits, and the embedding also in
 * 32-bit floats, because published files store it once for the lookup and once, in 4 bits, as the output head. A model
 * that is only published in 16 bits has two bytes for each weight.
 */
export function downloadBytes({ parameters, embedding, half }: RecommendedModel): number {
  if (half) return 2 * parameters;
  return Math.round(parameters * Q4_BYTES + embedding * 4);
}

/**
 * Estimates the bytes of memory that a loaded model needs: weights of 8 bits, and a KV cache of 32-bit floats for a
 * prompt of `PROMPT_TOKENS`.
 */
export function memoryBytes({ parameters, kv }: RecommendedModel): number {
  return parameters + 2 * 4 * kv.layers * kv.heads * kv.headSize * PROMPT_TOKENS;
}

/** Tells whether the model fits a machine with this many bytes of memory, by the estimate `memoryBytes`. */
export function fitsMemory(model: RecommendedModel, totalMemory: number): boolean {
  return memoryBytes(model) <= FITS * totalMemory;
}

/**
 * Returns the model to recommend first for a machine with this many bytes of memory: the first of `RECOMMENDED_MODELS`
 * with a use that needs at most the share `COMFORTABLE` of it, or else the last one that fits; undefined if none fits.
 */
export function modelFor(totalMemory: number, use: Use): RecommendedModel | undefined {
  const models = RECOMMENDED_MODELS.filter(({ uses }) => uses.includes(use));
  return (
    models.find((model) => memoryBytes(model) <= COMFORTABLE * totalMemory) ??
    models.findLast((model) => fitsMemory(model, totalMemory))
  );
}

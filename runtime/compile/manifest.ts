import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { AssayError } from '../../lib/errors.ts';
import { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { Precision, PrecisionChoice } from '../../lib/schema/precision.ts';
import { EncoderContract } from '../contracts/encoder-contracts.ts';

/** File name of the manifest in a compiled model's folder. */
export const MANIFEST_FILE = 'compiled.json';

/**
 * Version of the compiler's output, which is part of the fingerprint. Increase it with every change of the output, so
 * that models compiled earlier are compiled again.
 */
export const COMPILER_VERSION = 27;

const Positive = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1 << 24));
const Name = v.pipe(v.string(), v.minLength(1), v.maxLength(256));

/** Graphs of the layers, one for each shape: each computes `chunk` new cells after `past` earlier ones. */
const StaticBodies = v.pipe(v.array(v.strictObject({ graph: Name, chunk: Positive, past: Positive })), v.minLength(1));

/**
 * Describes the static graphs of a model. The `graph` of its manifest is then the lookup graph, which finds embeddings
 * and rotary rows for any number of tokens, on the CPU.
 */
const StaticGraphs = v.strictObject({
  /** Outputs of the lookup graph with embeddings, `[1, tokens, width]`. They are inputs of every body. */
  embeddings: v.array(v.strictObject({ name: Name, width: Positive })),
  /** Outputs of the lookup graph with rows of the rotary tables, of the same shape. They are inputs of every body. */
  rotary: v.array(v.strictObject({ name: Name, width: Positive })),
  /** Element type of the keys and values that the bodies read and return. */
  kvType: v.picklist(['float32', 'float16']),
  bodies: StaticBodies,
  /** Bodies of the same shapes with 16-bit keys and values; absent once the model is compiled for a device. */
  halfBodies: v.optional(StaticBodies),
  /**
   * Bodies for any numbers of new and past cells, by element type of keys and values, for devices with kernels of their
   * own; absent once the model is compiled for a device.
   */
  anyShape: v.optional(v.strictObject({ float32: Name, float16: Name })),
  /** Graph that converts `rows` rows of a body's outputs, `[1, chunk, width]`, to logits. */
  head: v.strictObject({
    graph: Name,
    rows: Positive,
    inputs: v.array(v.strictObject({ name: Name, from: Name, width: Positive })),
  }),
});
export type StaticGraphs = v.InferOutput<typeof StaticGraphs>;

/** Names of a graph's inputs, other than those for its KV, its states and media. */
const GraphInputs = v.strictObject({
  tokens: Name,
  /** Input with a 1 for every position up to the last new one; absent if the graph has none. */
  attentionMask: v.optional(Name),
  positions: v.optional(Name),
  /**
   * Number of rows of `positions`: 3 for rotary embeddings with three parts, `[3, 1, new]`; absent for one row, `[1,
   * new]`.
   */
  positionRows: v.optional(v.literal(3)),
  /**
   * Inputs for additive attention masks `[1, 1, new, all]`, one for each size of attention window (null: no window).
   */
  masks: v.array(v.strictObject({ name: Name, window: v.nullable(Positive) })),
  /** Inputs that describe how new tokens follow each other, for recurrent layers (`onnx/rewrites/pack-states.ts`). */
  lanes: v.optional(
    v.strictObject({
      roots: Name,
      cells: Name,
      live: Name,
      places: Name,
      kept: Name,
      windows: v.array(v.strictObject({ name: Name, width: v.pipe(Positive, v.maxValue(64)) })),
    }),
  ),
  /** Input for the row numbers whose logits are needed; absent if the graph returns the logits of all rows. */
  rows: v.optional(Name),
});

/** Describes a compiled model to the engine, which then need not analyse its graphs. */
export const Manifest = v.strictObject({
  version: v.literal(COMPILER_VERSION),
  device: v.picklist(['NPU', 'GPU', 'CPU']),
  precision: Precision,
  choice: PrecisionChoice,
  maxPromptLen: Positive,
  /** Maximum number of positions that the model supports: prompt and answer together. */
  contextLength: Positive,
  /** Number of tokens in the vocabulary. Bounded to eight times the largest published one. */
  vocabSize: v.pipe(Positive, v.maxValue(1 << 21)),
  /** File of the graph, in the same folder. */
  graph: Name,
  /**
   * Way in which the engine runs the graph. `packed`: several branches in one sequence, KV written in place. `plain`:
   * each branch alone, KV passed in and out; the answers are the same. `static`: packed branches over static graphs
   * (`static`).
   */
  path: v.picklist(['packed', 'plain', 'static']),
  inputs: GraphInputs,
  /**
   * Number of sequences that one run can compute (`onnx/rewrites/attention-slots.ts`). Inputs for KV, masks, lengths
   * and positions then exist once per slot. If absent, a run computes one sequence, whose inputs have the names given
   * here.
   */
  slots: v.optional(v.pipe(Positive, v.maxValue(64))),
  /**
   * Masks of branches, if a run may compute these in two parts (`onnx/rewrites/two-part-attention.ts`): one for each
   * size of attention window, and number of query heads for each key head.
   */
  branchMasks: v.optional(
    v.pipe(
      v.array(v.strictObject({ name: Name, window: v.nullable(Positive), group: v.pipe(Positive, v.maxValue(1024)) })),
      v.minLength(1),
    ),
  ),
  /**
   * Number of threads that may compute the graph. If a layer has fewer key heads, it multiplies the values of branches
   * in columns (`COLUMNS` in `onnx/rewrites/two-part-attention.ts`).
   */
  threads: v.optional(Positive),
  /** True if the graph has a mixture of experts, whose number of rows depends on all tokens of a run. */
  experts: v.optional(v.literal(true)),
  /**
   * Second graph of a small model, for runs of one sequence, where binding the KV of empty slots would take a third of
   * a decode step. If absent, such runs leave the other slots of the main graph empty.
   */
  alone: v.optional(v.strictObject({ graph: Name, inputs: GraphInputs })),
  logits: Name,
  /**
   * Present if a decision model's own layer takes the place of the language model's head, or only the rows of that head
   * that the model's labels need. `vocabSize` is then the number of its outputs.
   */
  readout: v.optional(v.picklist(['labels', 'layer'])),
  /**
   * Name of an output that comes first and is not a tensor, so that onnxruntime-node does not copy the others
   * (`onnx/rewrites/end-results.ts`).
   */
  end: v.optional(Name),
  kv: v.pipe(
    v.array(
      v.strictObject({
        past: v.tuple([Name, Name]),
        present: v.tuple([Name, Name]),
        // These two bounds limit the bytes of a KV cell. Published models have up to 128 heads of size up to 256.
        heads: v.pipe(Positive, v.maxValue(1024)),
        headSize: v.pipe(Positive, v.maxValue(1024)),
      }),
    ),
    v.minLength(1),
    v.maxLength(1024),
  ),
  /** Inputs for features of images or audio, of a model that reads them (`onnx/rewrites/fuse-embeddings.ts`). */
  media: v.optional(
    v.strictObject({
      features: Name,
      rows: Name,
      width: Positive,
      /** Number of vectors side by side in a feature row of `width` elements: one, and one for each deepstack layer. */
      parts: v.pipe(Positive, v.maxValue(64)),
      /** File of the graph that computes features from images or audio, in the same folder. */
      encoder: Name,
    }),
  ),
  /** States of recurrent layers: input, output and dimensions for one sequence. */
  states: v.optional(
    v.pipe(
      v.array(
        v.strictObject({
          past: Name,
          present: Name,
          dims: v.pipe(v.array(v.pipe(Positive, v.maxValue(1 << 16))), v.minLength(1), v.maxLength(4)),
        }),
      ),
      v.maxLength(2048),
    ),
  ),
  static: v.optional(StaticGraphs),
  /**
   * Identity and measurements of the device whose binaries the folder contains. Absent if the graphs suit any device.
   */
  compiledFor: v.optional(
    v.strictObject({
      /** Names the plugin, chip and driver. If any of them changes, the model must be compiled again. */
      identity: v.pipe(v.string(), v.minLength(1), v.maxLength(1000)),
      ...DeviceFigures.entries,
    }),
  ),
});
export type Manifest = v.InferOutput<typeof Manifest>;

/** Describes a compiled encoder model: a model that reads a row of tokens at once, and has no KV cache. */
export const EncoderManifest = v.strictObject({
  kind: v.literal('encoder'),
  version: v.literal(COMPILER_VERSION),
  device: v.literal('CPU'),
  precision: Precision,
  choice: PrecisionChoice,
  /** Most tokens of a row. */
  maxPromptLen: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1 << 20)),
  /** Contract of an encoder; null for a decision model on a language model, whose files say it (`contractInFolder`). */
  contract: v.nullable(EncoderContract),
  /** Files of the graphs by what they compute: `model`, or `encoder` and its heads. */
  graphs: v.record(Name, Name),
});
export type EncoderManifest = v.InferOutput<typeof EncoderManifest>;

/** File name of the reference logits in a compiled model's folder. */
export const REFERENCE_FILE = 'reference.json';

const Index = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1 << 24));
const Row = v.pipe(v.array(v.pipe(v.number(), v.finite())), v.minLength(1), v.maxLength(1024));

/**
 * Logits of a short prompt, computed in 32-bit floats from the published weights. The logits of every precision are
 * compared with them.
 */
export const Reference = v.strictObject({
  tokens: v.pipe(v.array(Index), v.minLength(1), v.maxLength(64)),
  /** Indices in `tokens` after which the logits were taken, ascending. */
  positions: v.pipe(v.array(Index), v.minLength(1), v.maxLength(64)),
  /**
   * Step between the vocabulary entries of a row: `logits` has a row for each position, with the logits of the tokens
   * 0, `stride`, 2 · `stride` and so on.
   */
  stride: v.pipe(Index, v.minValue(1)),
  logits: v.pipe(v.array(Row), v.minLength(1), v.maxLength(64)),
});
export type Reference = v.InferOutput<typeof Reference>;
/** Logits of an encoder model for a few questions, in 32-bit floats. */
const EncoderReference = v.array(v.array(v.pipe(v.number(), v.finite())));

/** Reads a JSON file of a compiled model's folder. Throws `engine_failed` if there is no valid one. */
function readCompiled<T>(folder: string, file: string, schema: v.GenericSchema<unknown, T>): T {
  try {
    return v.parse(schema, JSON.parse(readFileSync(join(folder, file), 'utf8')));
  } catch (cause) {
    throw new AssayError(
      'engine_failed',
      'The compiled model is incomplete. Delete its compiled files (assay rm --compiled-only <model>) and load it again.',
      { cause },
    );
  }
}

/** Reads the manifest of a compiled model's folder. Throws `engine_failed` if there is no valid one. */
export const readManifest = (folder: string): Manifest => readCompiled(folder, MANIFEST_FILE, Manifest);

/** Returns the most threads that compute tasks with the same bits alone and in company; undefined: any number. */
export function mostThreadsOf({ branchMasks, kv, threads = 1 }: Manifest): number | undefined {
  const divided = kv.map(({ heads }) => heads).filter((heads) => threads <= heads);
  return branchMasks && divided.length > 0 ? Math.min(...divided) : undefined;
}

/** Reads the manifest of a compiled encoder model; returns null if the folder has a model of another kind. */
export function readEncoderManifest(folder: string): EncoderManifest | null {
  const { kind } = readCompiled(folder, MANIFEST_FILE, v.looseObject({ kind: v.optional(v.unknown()) }));
  return kind === 'encoder' ? readCompiled(folder, MANIFEST_FILE, EncoderManifest) : null;
}

/** Reads the reference of a compiled model's folder. Throws `engine_failed` if there is no valid one. */
export const readReference = (folder: string): Reference => readCompiled(folder, REFERENCE_FILE, Reference);
/** Reads the reference of a compiled encoder model's folder, as `readReference` does. */
export const readEncoderReference = (folder: string): number[][] =>
  readCompiled(folder, REFERENCE_FILE, EncoderReference);

/**
 * Writes the manifest of a compiled model's folder. Must be the last file to be written, because it marks the folder as
 * complete.
 */
export function writeManifest(folder: string, manifest: Manifest | EncoderManifest): void {
  writeFileSync(join(folder, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
}

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { FormChoice } from '../../lib/schema/form-choice.ts';
import { WeightForm } from '../../lib/schema/weight-form.ts';
import { incomplete } from './incomplete.ts';

/** Name of the manifest in a compiled model's folder. */
export const MANIFEST_FILE = 'compiled.json';

/**
 * Version of the compiled output, part of the fingerprint. Raise it with every change of the output, so that older
 * forms are rebuilt.
 */
export const COMPILER_VERSION = 9;

const Positive = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1 << 24));
const Name = v.pipe(v.string(), v.minLength(1), v.maxLength(256));

/** Describes a model over fixed shapes. `graph` looks up embeddings and rotary tables, on the CPU, in any length. */
const StaticGraphs = v.strictObject({
  /** Results of the lookup, `[1, tokens, width]`, which every body reads. */
  embeddings: v.array(v.strictObject({ name: Name, width: Positive })),
  rotary: v.array(v.strictObject({ name: Name, width: Positive })),
  /** Graphs of the layers, one for each shape: `chunk` new cells after `past` cells. */
  bodies: v.pipe(v.array(v.strictObject({ graph: Name, chunk: Positive, past: Positive })), v.minLength(1)),
  /** Graph that turns `rows` rows of a body's result, `[1, chunk, width]`, into their logits. */
  head: v.strictObject({
    graph: Name,
    rows: Positive,
    inputs: v.array(v.strictObject({ name: Name, from: Name, width: Positive })),
  }),
});
export type StaticGraphs = v.InferOutput<typeof StaticGraphs>;

/** Names of the inputs of a graph, besides its KV. */
const GraphInputs = v.strictObject({
  tokens: Name,
  /** Input of ones for every position so far; absent in graphs without it. */
  attentionMask: v.optional(Name),
  positions: v.optional(Name),
  /** Rows of `positions`, for rotary embeddings with three parts: `[3, 1, new]`. Absent: `[1, new]`. */
  positionRows: v.optional(v.literal(3)),
  /**
   * Inputs for additive masks `[1, 1, new, all]`, one for each attention window of the model (null: the whole
   * sequence).
   */
  masks: v.array(v.strictObject({ name: Name, window: v.nullable(Positive) })),
  /** Inputs that say how new tokens follow each other, for layers that keep a state (`onnx/pack-states.ts`). */
  lanes: v.optional(
    v.strictObject({
      roots: Name,
      cells: Name,
      live: Name,
      slots: Name,
      kept: Name,
      windows: v.array(v.strictObject({ name: Name, width: v.pipe(Positive, v.maxValue(64)) })),
    }),
  ),
  /** Input for the indices of the rows whose logits are needed; absent when the graph returns all. */
  rows: v.optional(Name),
});

/** Describes a compiled graph, so that the engine need not read it. */
export const Manifest = v.strictObject({
  version: v.literal(COMPILER_VERSION),
  device: v.picklist(['NPU', 'GPU', 'CPU']),
  form: WeightForm,
  choice: FormChoice,
  maxPromptLen: Positive,
  /** Positions that the model supports: prompt and answer together. */
  contextLength: Positive,
  /** Tokens of the vocabulary: up to eight times the largest published one. */
  vocabSize: v.pipe(Positive, v.maxValue(1 << 21)),
  /** File of the graph in the same folder. */
  graph: Name,
  /**
   * `packed`: several branches in one sequence, KV written in place. `plain`: one sequence per run, KV passed in and
   * out; the answers are the same. `static`: packed branches over fixed shapes (`static`).
   */
  path: v.picklist(['packed', 'plain', 'static']),
  inputs: GraphInputs,
  /**
   * Sequences that one run can take (`onnx/attention-slots.ts`): KV, masks, lengths and positions exist once for each.
   * Absent: one, under the names given here.
   */
  slots: v.optional(v.pipe(Positive, v.maxValue(64))),
  /**
   * A second graph of small models, for runs of one sequence: there, binding the KV of empty slots would cost a third
   * of a decode step. Absent: such runs leave the other slots empty.
   */
  alone: v.optional(v.strictObject({ graph: Name, inputs: GraphInputs })),
  logits: Name,
  /** Name of a first output that is not a tensor, so that results are not copied (`onnx/end-results.ts`). */
  end: v.optional(Name),
  kv: v.pipe(
    v.array(
      v.strictObject({
        past: v.tuple([Name, Name]),
        present: v.tuple([Name, Name]),
        // Together they bound the bytes of a KV cell; published models have up to 128 heads of up to 256.
        heads: v.pipe(Positive, v.maxValue(1024)),
        headSize: v.pipe(Positive, v.maxValue(1024)),
      }),
    ),
    v.minLength(1),
    v.maxLength(1024),
  ),
  /** Names the inputs for media of a model that reads them (`onnx/fuse-embeddings.ts`). */
  media: v.optional(
    v.strictObject({
      features: Name,
      rows: Name,
      width: Positive,
      /** File of the graph that makes features of pixels, in the same folder. */
      encoder: Name,
    }),
  ),
  /** States of layers without attention, for one sequence. */
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
  /** Device of the compiled binaries, with its measurements; absent: graphs for any device. */
  compiledFor: v.optional(
    v.strictObject({
      /** Names plugin, chip and driver; any other needs another compile. */
      identity: v.pipe(v.string(), v.minLength(1), v.maxLength(1000)),
      ...DeviceFigures.entries,
    }),
  ),
});
export type Manifest = v.InferOutput<typeof Manifest>;

/** Reads the manifest of a compiled model's folder. Throws `engine_failed` when there is no valid one. */
export function readManifest(folder: string): Manifest {
  try {
    return v.parse(Manifest, JSON.parse(readFileSync(join(folder, MANIFEST_FILE), 'utf8')));
  } catch (cause) {
    throw incomplete(cause);
  }
}

/** Writes the manifest. It is written last: with it a folder is complete. */
export function writeManifest(folder: string, manifest: Manifest): void {
  writeFileSync(join(folder, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
}

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { FormChoice } from '../../lib/schema/form-choice.ts';
import { WeightForm } from '../../lib/schema/weight-form.ts';
import { incomplete } from './incomplete.ts';

/** Name of the manifest in a compiled model's folder. */
export const MANIFEST_FILE = 'compiled.json';

/** Raised whenever compiled output changes, so that what older versions wrote is rebuilt. Part of the fingerprint. */
export const COMPILER_VERSION = 6;

const Positive = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1 << 24));
const Name = v.pipe(v.string(), v.minLength(1), v.maxLength(256));

/**
 * The graphs of a model over fixed shapes; `graph` is the one that looks up embeddings and rotary tables, on the CPU,
 * in any length.
 */
const StaticGraphs = v.strictObject({
  /** What the lookup gives, `[1, tokens, width]`, and every body takes. */
  embeddings: v.array(v.strictObject({ name: Name, width: Positive })),
  rotary: v.array(v.strictObject({ name: Name, width: Positive })),
  /** The layers, one for each shape: `chunk` new cells behind `past` cells. */
  bodies: v.pipe(v.array(v.strictObject({ graph: Name, chunk: Positive, past: Positive })), v.minLength(1)),
  /** From `rows` rows of what a body gives, `[1, chunk, width]`, to their logits. */
  head: v.strictObject({
    graph: Name,
    rows: Positive,
    inputs: v.array(v.strictObject({ name: Name, from: Name, width: Positive })),
  }),
});
export type StaticGraphs = v.InferOutput<typeof StaticGraphs>;

/** Inputs of a graph, beside its KV. */
const GraphInputs = v.strictObject({
  tokens: Name,
  /** Ones for every position so far; absent in graphs that do without. */
  attentionMask: v.optional(Name),
  positions: v.optional(Name),
  /** Additive masks `[1, 1, new, all]`, one for each attention window of the model (null: the whole sequence). */
  masks: v.array(v.strictObject({ name: Name, window: v.nullable(Positive) })),
  /** How new tokens follow each other, for layers that keep a state (`onnx/pack-states.ts`). */
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
  /** Indices of the rows whose logits are wanted; absent where the graph gives all. */
  rows: v.optional(Name),
});

/** What the engine must know of a compiled graph, so that it never has to look inside. */
export const Manifest = v.strictObject({
  version: v.literal(COMPILER_VERSION),
  device: v.picklist(['NPU', 'GPU', 'CPU']),
  form: WeightForm,
  choice: FormChoice,
  maxPromptLen: Positive,
  /** Positions the model was made for: prompt and answer together. */
  contextLength: Positive,
  /** Tokens: up to eight times the largest published vocabulary. */
  vocabSize: v.pipe(Positive, v.maxValue(1 << 21)),
  /** The graph's file in the same folder. */
  graph: Name,
  /**
   * `packed`: several branches in one sequence, KV written in place. `plain`: one sequence a run, KV handed in and out;
   * the answers are the same. `static`: branches packed as well, over fixed shapes (`static`).
   */
  path: v.picklist(['packed', 'plain', 'static']),
  inputs: GraphInputs,
  /**
   * Sequences that one run can take (`onnx/attention-slots.ts`): the KV, masks, lengths and positions are there once
   * for each. Absent: one, under the names
   * as they are here.
   */
  slots: v.optional(v.pipe(Positive, v.maxValue(64))),
  /**
   * A graph of its own for runs of one sequence, of small models: there, binding the KV of empty slots would cost a
   * third of a decode step.
   * Absent: such runs leave the other slots empty.
   */
  alone: v.optional(v.strictObject({ graph: Name, inputs: GraphInputs })),
  logits: Name,
  /** An output that stands first and is no tensor, so that results are not copied (`onnx/end-results.ts`). */
  end: v.optional(Name),
  kv: v.pipe(
    v.array(
      v.strictObject({
        past: v.tuple([Name, Name]),
        present: v.tuple([Name, Name]),
        // Together they bound what a cell of the KV cache takes; published models have up to 128 of up to 256.
        heads: v.pipe(Positive, v.maxValue(1024)),
        headSize: v.pipe(Positive, v.maxValue(1024)),
      }),
    ),
    v.minLength(1),
    v.maxLength(1024),
  ),
  /** States of layers without attention, of one sequence each. */
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
  /** The device whose binaries the graphs are, and what it was measured to do; absent: graphs for any device. */
  compiledFor: v.optional(
    v.strictObject({
      /** Plugin, chip and driver; other ones need another compile. */
      identity: v.pipe(v.string(), v.minLength(1), v.maxLength(1000)),
      ...DeviceFigures.entries,
    }),
  ),
});
export type Manifest = v.InferOutput<typeof Manifest>;

/** Reads the manifest of a compiled model's folder. Throws `engine_failed` where it is none. */
export function readManifest(folder: string): Manifest {
  try {
    return v.parse(Manifest, JSON.parse(readFileSync(join(folder, MANIFEST_FILE), 'utf8')));
  } catch (cause) {
    throw incomplete(cause);
  }
}

/** Writes the manifest, in the end: with it a folder is complete. */
export function writeManifest(folder: string, manifest: Manifest): void {
  writeFileSync(join(folder, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
}

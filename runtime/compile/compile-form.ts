import type { WeightForm } from '../../lib/schema/weight-form.ts';
import { chooseRotaryTables } from '../onnx/choose-rotary.ts';
import { fuseEmbeddings } from '../onnx/fuse-embeddings.ts';
import { findLayout } from '../onnx/layout.ts';
import type { Model } from '../onnx/model.ts';
import { readModel } from '../onnx/read-model.ts';
import type { StaticShape } from '../onnx/static/plain-attention.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import type { Manifest } from './manifest.ts';
import { type PlannedGraphs, plannedGraphs } from './planned-graphs.ts';
import type { FixedPrecision } from './precision.ts';
import { ENCODER_FILE, rewritePacked } from './rewrite-packed.ts';
import { rewriteStatic } from './rewrite-static.ts';
import type { GraphFacts } from './rewritten-graphs.ts';
import { contextLength, publishedHeadSize, type SourceGraphs, sourceGraphs } from './source.ts';
import { formOf } from './weight-conversion.ts';

const WEIGHTS_FILE = 'weights.bin';
const ENCODER_WEIGHTS_FILE = 'encoder.bin';

/** Describes what a form's graphs can run at once. */
export interface FormShape {
  /** Tokens of the longest prompt. */
  maxPromptLen: number;
  /** Fixed shapes of the graphs; absent: any length. */
  shapes?: readonly StaticShape[] | undefined;
  /** Sequences that one run of any length can take, if the model supports it. */
  slots: number;
}

/** Plans one form of a published model. */
export interface PlannedForm extends PlannedGraphs {
  facts: GraphFacts & Pick<Manifest, 'form' | 'contextLength'>;
  /** The form of the weights as published. */
  published: WeightForm;
}

/**
 * Rewrites the published graph into one form, over fixed shapes if `shapes` are given. Reads no weights yet. Throws
 * `engine_failed` for a model that cannot be used, or that has no form over fixed shapes.
 */
export async function planForm(
  source: string,
  precision: FixedPrecision,
  { maxPromptLen, shapes, slots }: FormShape,
): Promise<PlannedForm> {
  const model = readSource(sourceGraphs(source, precision));
  chooseRotaryTables(model, maxPromptLen);
  const context = await contextLength(source, model);
  const layout = findLayout(model, await publishedHeadSize(source));
  const published = formOf(model);
  const { facts, form, graphs } = shapes
    ? rewriteStatic(model, layout, precision, shapes)
    : rewritePacked(model, layout, precision, slots);
  return {
    facts: { ...facts, form, contextLength: Math.min(context, longestPast(shapes)) },
    published,
    ...plannedGraphs(graphs, WEIGHTS_FILE),
  };
}

/**
 * Plans the graph that makes features of pixels, in 32 bits, with its weights as published; null if the model has none.
 */
export function planEncoder(source: string): PlannedGraphs | null {
  const { encoder } = sourceGraphs(source, 'keep');
  if (!encoder) return null;
  const model = readModel(encoder);
  if (isHalf(model)) toFloat32(model);
  return plannedGraphs([{ file: ENCODER_FILE, model }], ENCODER_WEIGHTS_FILE);
}

/** Reads the graph of a language model that reads tokens. */
function readSource({ model, embeddings }: SourceGraphs): Model {
  return embeddings ? fuseEmbeddings(readModel(model), readModel(embeddings)) : readModel(model);
}

/** Returns the positions that the fixed shapes have cells for; unlimited without fixed shapes. */
function longestPast(shapes: readonly StaticShape[] = []): number {
  return shapes.length > 0 ? Math.max(...shapes.map(({ past }) => past)) : Number.POSITIVE_INFINITY;
}

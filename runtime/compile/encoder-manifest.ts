import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { Precision, PrecisionChoice } from '../../lib/schema/precision.ts';
import { EncoderContract } from '../contracts/encoder-contracts.ts';
import { COMPILER_VERSION, incomplete, MANIFEST_FILE } from './manifest.ts';

/** File name of the reference logits in a compiled model's folder (`probeLogits` in floats). */
export const ENCODER_REFERENCE = 'reference.json';

const Name = v.pipe(v.string(), v.minLength(1), v.maxLength(256));

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

/**
 * Reads the manifest of a compiled encoder model; returns null if the folder has a model of another kind. Throws
 * `engine_failed` if there is no valid manifest.
 */
export function readEncoderManifest(folder: string): EncoderManifest | null {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, MANIFEST_FILE), 'utf8'));
    return v.is(v.looseObject({ kind: v.literal('encoder') }), manifest) ? v.parse(EncoderManifest, manifest) : null;
  } catch (cause) {
    throw incomplete(cause);
  }
}

/**
 * Writes the manifest of a compiled model's folder. Must be the last file to be written, because it marks the folder as
 * complete.
 */
export function writeEncoderManifest(folder: string, manifest: EncoderManifest): void {
  writeFileSync(join(folder, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
}

const Logits = v.array(v.array(v.pipe(v.number(), v.finite())));

/** Reads the reference logits of a compiled model's folder. Throws `engine_failed` if there are none. */
export function readEncoderReference(folder: string): number[][] {
  try {
    return v.parse(Logits, JSON.parse(readFileSync(join(folder, ENCODER_REFERENCE), 'utf8')));
  } catch (cause) {
    throw incomplete(cause);
  }
}

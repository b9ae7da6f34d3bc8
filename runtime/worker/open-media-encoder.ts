import { join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import type { Manifest } from '../compile/manifest.ts';
import { sessionOptions } from '../engine/model.ts';
import type { MediaFamily } from '../media/families/family.ts';
import { deepstackNames } from '../onnx/rewrites/fuse-embeddings.ts';
import { MediaEncoder } from './media-encoder.ts';

/** Advice at the end of the reasons why an encoder cannot be used. */
const LOAD = 'Load other files of the model.';

/**
 * Opens the encoder of a compiled model. If its files do not fit the model, returns the error message for requests with
 * media instead. Throws onnxruntime's error if the encoder does not load.
 *
 * @param dir folder of the compiled model
 * @param threads threads of onnxruntime; undefined: its default
 */
export async function openMediaEncoder(
  dir: string,
  { encoder, width, parts }: NonNullable<Manifest['media']>,
  family: MediaFamily,
  threads: number | undefined,
): Promise<MediaEncoder | string> {
  const options = { ...(await sessionOptions(threads)), executionProviders: ['cpu'] };
  const session = await InferenceSession.create(join(dir, encoder), options);
  const refusal = whyUnusable(session, family, parts);
  if (!refusal) return new MediaEncoder(family, session, width);
  await session.release();
  return refusal;
}

/**
 * Returns the reason why an encoder does not fit its family or the decoder; null if it fits.
 *
 * @param parts number of vectors that the decoder takes for each token: the encoder's output and its deepstack features
 */
function whyUnusable({ inputNames, outputNames }: InferenceSession, family: MediaFamily, parts: number): string | null {
  const unknown = inputNames.find((name) => !family.inputNames.includes(name));
  if (unknown)
    return `These files of the model have an encoder with the input "${unknown}", which is not known. ${LOAD}`;
  const given = deepstackNames(outputNames).length;
  const needed = family.kind === 'image' && family.deepstack ? Math.max(1, parts - 1) : 0;
  if (given === needed && parts === needed + 1) return null;
  return `These files of the model leave out its deepstack features, without which it sees little. ${LOAD}`;
}

import { endWithParent } from '../process/end-with-parent.ts';
import { decodeAudio, RecentAudio } from './audio/decode-audio.ts';
import { AudioFault } from './audio/limits.ts';
import { logMel } from './audio/log-mel.ts';
import { cutTiles, decodeImage, imageSize, MOST_PIXELS } from './decode-image.ts';
import { documentText } from './document-text.ts';
import type { FromMedia, ToMedia } from './messages.ts';

/**
 * Entry point of the media process. A crash of a decoder ends only this process, which holds no model.
 * `supervisor/media/media-process.ts` starts it.
 */

endWithParent();
// Ignores signals: Ctrl-C sends one to the whole process group, but the server ends this process itself, after the last
// request.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('message', (request: ToMedia) => {
  answer(request)
    .catch((error: Error) => failure(request.id, error))
    .then((reply) => process.send?.(reply));
});

// The audio decoders print each error in addition to returning it.
console.error = () => {};

const recent = new RecentAudio();

/**
 * Returns the decoded samples of a recording. Caches them, because the server asks about each recording twice: for its
 * length, then for its log-mel values.
 */
async function decoded(request: { sha256: string; bytes: Uint8Array; mostSamples?: number }): Promise<Float32Array> {
  const { sha256, bytes, mostSamples } = request;
  const samples = recent.get(sha256) ?? (await decodeAudio(bytes, mostSamples));
  recent.keep(sha256, samples);
  return samples;
}

async function answer(request: ToMedia): Promise<FromMedia> {
  const { id, bytes } = request;
  if (request.type === 'length') return { type: 'length', id, samples: (await decoded(request)).length };
  if (request.type === 'mel') {
    const values = logMel(await decoded(request), request.plan);
    return { type: 'mel', id, data: new Uint8Array(values.buffer) };
  }
  if (request.type === 'text') return { type: 'text', id, text: await documentText(bytes, request.format) };
  const { width, height } = await imageSize(bytes);
  if (width * height > MOST_PIXELS) return { type: 'failed', id, fault: 'too_large', detail: `${width}x${height}` };
  if (request.type === 'size') return { type: 'size', id, width, height };
  return { type: 'pixels', id, data: cutTiles(await decodeImage(bytes), request.plan) };
}

/** Matches what libvips says of too many pixels. It makes room for those of a WebP file before it counts them. */
const TOO_LARGE = /pixel limit|out of memory/iu;

function failure(id: number, error: Error): FromMedia {
  const fault = error instanceof AudioFault ? error.kind : TOO_LARGE.test(error.message) ? 'too_large' : 'undecodable';
  return { type: 'failed', id, fault, detail: error.message.slice(0, 4000) };
}

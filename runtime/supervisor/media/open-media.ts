import { createHash } from 'node:crypto';
import type { ChatMessage, MediaPart } from '../../../lib/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { MOST_PIXELS } from '../../media/limits.ts';
import { imageBytes } from '../../media/media-bytes.ts';
import { MOST_IMAGES, type Work } from '../../protocol/messages.ts';
import type { CallMedia } from '../call.ts';
import { type FaultKind, MediaFault, type MediaProcess } from './media-process.ts';

/** Counts what becomes of images. */
export interface MediaCounts {
  opened(): void;
  decoded(): void;
  refused(reason: string): void;
}

/**
 * Opens the images of one request: reads their headers first, and decodes only those that the engine asks for. Throws
 * `invalid_value` that names the image.
 */
export function openMedia(media: Pick<MediaProcess, 'size' | 'pixels'>, counts: MediaCounts): CallMedia {
  const files = new Map<string, { bytes: Uint8Array; param: string }>();

  async function openPart(part: MediaPart): Promise<MediaPart> {
    const bytes = imageBytes(part);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const { width, height } = await media.size(bytes).catch((fault) => refuse(fault, part.param));
    files.set(sha256, { bytes, param: part.param });
    counts.opened();
    // The bytes stay here: the engine knows a picture by its hash.
    return { ...part, source: { type: 'base64', data: '', mimeType: '' }, opened: { sha256, width, height } };
  }

  function refuse(fault: unknown, param: string): never {
    if (!(fault instanceof MediaFault)) throw fault;
    throw new AssayError('invalid_value', `${param} ${REASONS[fault.kind]}`, { param, cause: fault });
  }

  /** Counts refusals of an operation. */
  async function counting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { cause } = error as AssayError;
      counts.refused(cause instanceof MediaFault ? cause.kind : 'unreadable');
      throw error;
    }
  }

  return {
    open: (work) =>
      counting(async () => {
        checkCount(work);
        return mapImages(work, openPart);
      }),
    pixels: (wanted) =>
      counting(() =>
        Promise.all(
          wanted.map(async ({ sha256, detail, plan }) => {
            const file = files.get(sha256);
            if (!file) throw new AssayError('engine_failed', 'The engine asks for an image that the request lacks.');
            const data = await media.pixels(file.bytes, plan).catch((fault) => refuse(fault, file.param));
            counts.decoded();
            return { sha256, detail, data };
          }),
        ),
      ),
  };
}

const REASONS: Readonly<Record<FaultKind, string>> = {
  undecodable: 'cannot be decoded: the file is damaged or cut off. Send it again, or save it anew.',
  too_large: `has more than ${MOST_PIXELS / 1e6} megapixels. Send a smaller one.`,
  slow: 'takes too long to decode. Send a smaller one.',
  crash: 'could not be decoded: the decoder ended. Save it anew, as PNG or JPEG.',
};

/** Tells whether a request has images. */
export function hasImages(work: Work): boolean {
  return imagesOf(work).length > 0;
}

function checkCount(work: Work): void {
  const extra = imagesOf(work)[MOST_IMAGES];
  if (!extra) return;
  const message = `${extra.param} is one image too many: a request may have ${MOST_IMAGES}.`;
  throw new AssayError('invalid_value', message, { param: extra.param });
}

function imagesOf(work: Work): MediaPart[] {
  const images: MediaPart[] = [];
  const walk = (parts: ChatMessage['parts']) => {
    for (const part of parts) if (part.type === 'image') images.push(part);
  };
  if (work.kind === 'tasks') walk(work.batch.media);
  for (const { parts } of messagesOf(work)) walk(parts);
  return images;
}

function messagesOf(work: Work): readonly ChatMessage[] {
  if (work.kind === 'chat') return work.request.messages;
  return 'messages' in work.batch.input ? work.batch.input.messages : [];
}

/** Returns the work with each image replaced. */
async function mapImages(work: Work, replace: (part: MediaPart) => Promise<MediaPart>): Promise<Work> {
  const mapParts = <P extends { type: string }>(parts: readonly P[]) =>
    Promise.all(
      parts.map(async (part) => (part.type === 'image' ? ((await replace(part as never)) as never as P) : part)),
    );
  const mapMessages = (messages: readonly ChatMessage[]) =>
    Promise.all(messages.map(async (message) => ({ ...message, parts: await mapParts(message.parts) })));
  if (work.kind === 'chat') {
    return { kind: 'chat', request: { ...work.request, messages: await mapMessages(work.request.messages) } };
  }
  const { input, media } = work.batch;
  const mapped = 'messages' in input ? { messages: await mapMessages(input.messages) } : input;
  return { kind: 'tasks', batch: { ...work.batch, input: mapped, media: await mapParts(media) } };
}

import { createHash } from 'node:crypto';
import type { ChatMessage, MediaPart } from '../../../lib/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { MOST_PIXELS } from '../../media/limits.ts';
import { checkFormat, imageBytes } from '../../media/media-bytes.ts';
import { MOST_IMAGES, type Work } from '../../protocol/messages.ts';
import type { CallMedia } from '../call.ts';
import { FetchFault, type FetchFaultKind, type ImageFetcher } from './fetch-image.ts';
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
export function openMedia(
  media: Pick<MediaProcess, 'size' | 'pixels'>,
  { counts, fetcher, signal }: { counts: MediaCounts; fetcher: ImageFetcher | undefined; signal: AbortSignal },
): CallMedia {
  const files = new Map<string, { bytes: Uint8Array; param: string }>();
  let fetchedBytes = 0;

  /** Fetches an image. All of one request have as many bytes as a request body at most. */
  async function fetchPart(url: string, param: string): Promise<Uint8Array> {
    if (!fetcher) throw refusal(new FetchFault('address_host', 'no host is allowed'), param);
    const bytes = await fetcher.fetch(url, MOST_FETCHED_BYTES - fetchedBytes, signal);
    fetchedBytes += bytes.length;
    checkFormat(bytes, param);
    return bytes;
  }

  async function openPart(part: MediaPart): Promise<MediaPart> {
    const { source, param } = part;
    const address = source.type === 'url' ? source.url : '';
    const bytes = imageBytes(part) ?? (await fetchPart(address, param).catch((fault) => refuse(fault, param)));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const { width, height } = await media.size(bytes).catch((fault) => refuse(fault, param));
    files.set(sha256, { bytes, param });
    counts.opened();
    // The bytes stay here: the engine knows a picture by its hash.
    return { ...part, source: { type: 'base64', data: '', mimeType: '' }, opened: { sha256, width, height } };
  }

  function refuse(fault: unknown, param: string): never {
    throw fault instanceof MediaFault || fault instanceof FetchFault ? refusal(fault, param) : fault;
  }

  /** Counts refusals of an operation. */
  async function counting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { cause } = error as AssayError;
      counts.refused(cause instanceof MediaFault || cause instanceof FetchFault ? cause.kind : 'unreadable');
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

/** Bytes of all fetched images of a request: as many as a request body may have. */
const MOST_FETCHED_BYTES = 20 * 2 ** 20;

function refusal(fault: MediaFault | FetchFault, param: string): AssayError {
  return new AssayError('invalid_value', `${param} ${REASONS[fault.kind]}`, { param, cause: fault });
}

const REASONS: Readonly<Record<FaultKind | FetchFaultKind, string>> = {
  address_scheme: 'is not fetched: only https addresses are, without credentials and port. Send the file itself.',
  address_host:
    'is at a host that this server does not fetch from. Send the file itself, as base64 or as a data: URL, or start the server with --allow-media-host.',
  address_private: 'is at an address that is not on the public internet, and is not fetched. Send the file itself.',
  address_redirect: 'was moved: redirects are not followed. Send the address that it leads to, or the file itself.',
  address_status: 'was not given out by its host. Check the address, or send the file itself.',
  address_large: 'is too large: the fetched images of a request may have 20 MiB together.',
  address_slow: 'was not fetched in time. Send the file itself.',
  address_unreachable: 'could not be fetched. Check the address, or send the file itself.',
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

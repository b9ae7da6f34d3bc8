import { createHash } from 'node:crypto';
import type { ChatMessage, MediaPart } from '../../../lib/conversation.ts';
import { AssayError } from '../../../lib/errors.ts';
import { MOST_SECONDS } from '../../media/audio/limits.ts';
import { MOST_PIXELS } from '../../media/limits.ts';
import { checkFormat, mediaBytes } from '../../media/media-bytes.ts';
import { MOST_MEDIA, type Work } from '../../protocol/messages.ts';
import type { CallMedia } from '../call.ts';
import { FetchFault, type FetchFaultKind, type ImageFetcher } from './fetch-image.ts';
import { type FaultKind, MediaFault, type MediaProcess } from './media-process.ts';

/** Counts what becomes of images, or of audio. */
export interface MediaCounts {
  opened(): void;
  decoded(): void;
  refused(reason: string): void;
}

/** Names what a model reads beside text. */
export type MediaKind = MediaPart['type'];

export interface OpenMediaOptions {
  kind: MediaKind;
  counts: MediaCounts;
  fetcher: ImageFetcher | undefined;
  signal: AbortSignal;
}

/**
 * Opens the images or the audio of one request: finds how large each is, and prepares only those that the engine asks
 * for. Throws `invalid_value` that names the part.
 */
export function openMedia(
  media: Pick<MediaProcess, 'size' | 'samples' | 'prepare'>,
  { kind, counts, fetcher, signal }: OpenMediaOptions,
): CallMedia {
  const files = new Map<string, { bytes: Uint8Array; param: string }>();
  let fetchedBytes = 0;

  /** Fetches a file. All of one request have as many bytes as a request body at most. */
  async function fetchPart(url: string, param: string): Promise<Uint8Array> {
    if (!fetcher) throw refusal(new FetchFault('address_host', 'no host is allowed'), kind, param);
    const bytes = await fetcher.fetch(url, MOST_FETCHED_BYTES - fetchedBytes, signal);
    fetchedBytes += bytes.length;
    checkFormat(kind, bytes, param);
    return bytes;
  }

  async function openPart(part: MediaPart): Promise<MediaPart> {
    const { source, param } = part;
    const address = source.type === 'url' ? source.url : '';
    const bytes = mediaBytes(part) ?? (await fetchPart(address, param).catch((fault) => refuse(fault, param)));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const facts = await factsOf(bytes).catch((fault) => refuse(fault, param));
    files.set(sha256, { bytes, param });
    counts.opened();
    // The bytes stay here: the engine knows a file by its hash.
    return { ...part, source: { type: 'base64', data: '', mimeType: '' }, opened: { sha256, ...facts } };
  }

  async function factsOf(bytes: Uint8Array) {
    return kind === 'image' ? media.size(bytes) : { samples: await media.samples(bytes) };
  }

  function refuse(fault: unknown, param: string): never {
    throw fault instanceof MediaFault || fault instanceof FetchFault ? refusal(fault, kind, param) : fault;
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
        checkCount(work, kind);
        return mapMedia(work, kind, openPart);
      }),
    prepare: (wanted) =>
      counting(() =>
        Promise.all(
          wanted.map(async ({ sha256, detail, plan }) => {
            const file = files.get(sha256);
            if (!file) throw new AssayError('engine_failed', 'The engine asks for a file that the request lacks.');
            const data = await media.prepare(file.bytes, plan).catch((fault) => refuse(fault, file.param));
            counts.decoded();
            return { sha256, detail, data };
          }),
        ),
      ),
  };
}

/** Bytes of all fetched files of a request: as many as a request body may have. */
const MOST_FETCHED_BYTES = 20 * 2 ** 20;

function refusal(fault: MediaFault | FetchFault, kind: MediaKind, param: string): AssayError {
  const reasons = kind === 'image' ? REASONS : AUDIO_REASONS;
  return new AssayError('invalid_value', `${param} ${reasons[fault.kind]}`, { param, cause: fault });
}

const REASONS: Readonly<Record<FaultKind | FetchFaultKind, string>> = {
  address_scheme: 'is not fetched: only https addresses are, without credentials and port. Send the file itself.',
  address_host:
    'is at a host that this server does not fetch from. Send the file itself, as base64 or as a data: URL, or start the server with --allow-media-host.',
  address_private: 'is at an address that is not on the public internet, and is not fetched. Send the file itself.',
  address_redirect: 'was moved: redirects are not followed. Send the address that it leads to, or the file itself.',
  address_status: 'was not given out by its host. Check the address, or send the file itself.',
  address_large: 'is too large: the fetched files of a request may have 20 MiB together.',
  address_slow: 'was not fetched in time. Send the file itself.',
  address_unreachable: 'could not be fetched. Check the address, or send the file itself.',
  undecodable: 'cannot be decoded: the file is damaged or cut off. Send it again, or save it anew.',
  too_large: `has more than ${MOST_PIXELS / 1e6} megapixels. Send a smaller one.`,
  slow: 'takes too long to decode. Send a smaller one.',
  crash: 'could not be decoded: the decoder ended. Save it anew, as PNG or JPEG.',
};

const AUDIO_REASONS: typeof REASONS = {
  ...REASONS,
  undecodable:
    'cannot be decoded: the file is empty, damaged or cut off, or has a sample rate below 8 kHz or above 192.',
  too_large: `is longer than ${MOST_SECONDS} seconds. Send it in parts.`,
  crash: 'could not be decoded: the decoder ended. Save it anew, as WAV or FLAC.',
};

/** Tells whether a request has media of a kind. */
export function hasMedia(work: Work, kind: MediaKind): boolean {
  return mediaOf(work, kind).length > 0;
}

function checkCount(work: Work, kind: MediaKind): void {
  const extra = mediaOf(work, kind)[MOST_MEDIA];
  if (!extra) return;
  const name = kind === 'image' ? 'image' : 'recording';
  const message = `${extra.param} is one ${name} too many: a request may have ${MOST_MEDIA}.`;
  throw new AssayError('invalid_value', message, { param: extra.param });
}

function mediaOf(work: Work, kind: MediaKind): MediaPart[] {
  const found: MediaPart[] = [];
  const walk = (parts: ChatMessage['parts']) => {
    for (const part of parts) if (part.type === kind) found.push(part);
  };
  if (work.kind === 'tasks') walk(work.batch.media);
  for (const { parts } of messagesOf(work)) walk(parts);
  return found;
}

function messagesOf(work: Work): readonly ChatMessage[] {
  if (work.kind === 'chat') return work.request.messages;
  return 'messages' in work.batch.input ? work.batch.input.messages : [];
}

/** Returns the work with each part of a kind replaced. */
async function mapMedia(work: Work, kind: MediaKind, replace: (part: MediaPart) => Promise<MediaPart>): Promise<Work> {
  const mapParts = <P extends { type: string }>(parts: readonly P[]) =>
    Promise.all(
      parts.map(async (part) => (part.type === kind ? ((await replace(part as never)) as never as P) : part)),
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

import { createHash } from 'node:crypto';
import type { ChatMessage, MediaKind, MediaPart, Part } from '../../../lib/contract/conversation.ts';
import { splitDataUrl } from '../../../lib/data-url.ts';
import { AssayError } from '../../../lib/errors.ts';
import { MOST_SAMPLES, MOST_SECONDS, PREPARED_RATE } from '../../media/audio/limits.ts';
import { MOST_PIXELS } from '../../media/decode-image.ts';
import { AUDIO_TYPES, type AudioType, IMAGE_TYPES, type ImageType, sniffAudio, sniffImage } from '../../media/sniff.ts';
import { MOST_MEDIA, type Work } from '../../protocol/messages.ts';
import { type CallMedia, engineFault } from '../calls/call.ts';
import { FetchFault, type FetchFaultKind, type ImageFetcher } from './fetch-image.ts';
import { type FaultKind, MediaFault, type MediaFile, type MediaProcess } from './media-process.ts';

/** Updates the metrics of one kind of media: the files of requests, and the requests refused because of one. */
export interface MediaCounts {
  /** Counts a file that was opened: its size in pixels or samples is known. */
  opened(): void;
  /** Counts a file that was decoded for the engine. */
  decoded(): void;
  /**
   * Counts a request that is refused because of a file. `reason`, a label of the metric, is a `FaultKind`, a
   * `FetchFaultKind` or `unreadable`.
   */
  refused(reason: string): void;
}

export interface OpenMediaOptions {
  kind: MediaKind;
  counts: MediaCounts;
  /** Fetches images by URL; undefined: their URLs are refused. */
  fetcher: ImageFetcher | undefined;
  /** Name of the caller; the decoder takes turns between callers. */
  caller?: string | undefined;
  /** Number of samples at 16 kHz of the longest recording that the loaded model can read. */
  mostSamples?: number | undefined;
}

/**
 * Returns the functions that open and decode the images, or the recordings, of one request. `open` finds the size of
 * every file; `prepare` decodes only those that the engine asks for. The `param` of their `invalid_value` is the path
 * of the image or recording in the request.
 */
export function openMedia(
  media: Pick<MediaProcess, 'size' | 'samples' | 'prepare'>,
  { kind, counts, fetcher, caller, mostSamples }: OpenMediaOptions,
): CallMedia {
  const files = new Map<string, MediaFile & { param: string }>();
  const budget = { bytes: MOST_FETCHED_BYTES };

  /** Fetches a file. All files of the request share one budget of bytes. */
  async function fetchPart(url: string, param: string, signal: AbortSignal): Promise<Uint8Array> {
    if (!fetcher) throw refusal(new FetchFault('address_host', 'no host is allowed'), kind, param);
    const bytes = await fetcher.fetch(url, budget, signal);
    checkFormat(kind, bytes, param);
    return bytes;
  }

  async function openPart(part: MediaPart, signal: AbortSignal): Promise<MediaPart> {
    const { source, param } = part;
    const address = source.type === 'url' ? source.url : '';
    const bytes = mediaBytes(part) ?? (await fetchPart(address, param, signal).catch((fault) => refuse(fault, param)));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const file = { sha256, bytes };
    const facts = await factsOf(file, signal).catch((fault) => refuse(fault, param));
    files.set(sha256, { ...file, param });
    counts.opened();
    // The file's bytes stay in the server, because the engine identifies a file by its hash.
    return { ...part, source: { type: 'base64', data: '', mimeType: '' }, opened: { sha256, ...facts } };
  }

  async function factsOf(file: MediaFile, signal: AbortSignal) {
    if (kind === 'image') return media.size(file, signal, caller);
    return { samples: await media.samples(file, signal, { caller, mostSamples }) };
  }

  function refuse(fault: unknown, param: string): never {
    if (fault instanceof MediaFault && fault.kind === 'too_long') throw tooLong(param, mostSamples, fault);
    throw fault instanceof MediaFault || fault instanceof FetchFault ? refusal(fault, kind, param) : fault;
  }

  /** Runs an operation. If it throws, counts a refusal, unless the caller has disconnected. */
  async function counting<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const { cause } = error as AssayError;
      counts.refused(cause instanceof MediaFault || cause instanceof FetchFault ? cause.kind : 'unreadable');
      throw error;
    }
  }

  return {
    open: (work, signal) =>
      counting(signal, async () => {
        checkCount(work, kind);
        const parts = mediaOfWork(work).filter(({ type }) => type === kind);
        const opened = new Map(
          await Promise.all(parts.map(async (part) => [part, await openPart(part, signal)] as const)),
        );
        return mapMedia(work, (part) => opened.get(part) ?? part);
      }),
    prepare: (wanted, signal) =>
      counting(signal, () =>
        Promise.all(
          wanted.map(async ({ sha256, detail, plan }) => {
            const file = files.get(sha256);
            if (!file) throw engineFault('The engine asked for a file that the request lacks.');
            const data = await media.prepare(file, plan, signal, caller).catch((fault) => refuse(fault, file.param));
            counts.decoded();
            return { sha256, detail, data };
          }),
        ),
      ),
  };
}

/** Maximum total bytes of the files that are fetched for a request: the same as of a request body. */
const MOST_FETCHED_BYTES = 20 * 2 ** 20;

function refusal(fault: MediaFault | FetchFault, kind: MediaKind, param: string): AssayError {
  const reasons = kind === 'image' ? REASONS : AUDIO_REASONS;
  return new AssayError('invalid_value', `${param} ${reasons[fault.kind]}`, { param, cause: fault });
}

function tooLong(param: string, mostSamples = 0, cause: MediaFault): AssayError {
  const seconds = Math.floor(mostSamples / PREPARED_RATE);
  const message = `${param} is longer than ${seconds} seconds, the longest recording that fits in the prompt of this model as it is loaded. Send a shorter one, or load the model with a larger max_prompt_len.`;
  return new AssayError('input_too_long', message, { param, cause });
}

const REASONS: Readonly<Record<FaultKind | FetchFaultKind, string>> = {
  address_scheme:
    'is not fetched: an address must begin with https:// and have no credentials and no port. Send the file itself.',
  address_host:
    'is at a host that this server does not fetch from. Send the file itself, as base64 or as a data: URL, or start the server with --allow-media-host.',
  address_private: 'is at an address that is not on the public internet, and is not fetched. Send the file itself.',
  address_redirect: 'was moved: redirects are not followed. Send the address that it leads to, or the file itself.',
  address_status: 'could not be fetched: its host answered with an error. Check the address, or send the file itself.',
  address_large: 'is too large: the fetched files of a request may have 20 MiB together. Send smaller files.',
  address_slow: 'was not fetched in time. Send the file itself.',
  address_unreachable: 'could not be fetched. Check the address, or send the file itself.',
  undecodable: 'cannot be decoded: the file is damaged or cut off. Send it again, or save it to a new file.',
  encoding: 'has an encoding that is not supported. Save it as PNG or JPEG.',
  too_large: `has more than ${MOST_PIXELS / 1e6} megapixels. Send a smaller one.`,
  too_long: 'is too long. Send a shorter one.',
  too_many_samples: `has more than ${MOST_SAMPLES / 1e6} million samples in all its channels. Send it with one channel at 16 kHz.`,
  slow: 'takes too long to decode. Send a smaller one.',
  crash: 'could not be decoded: the decoder ended. Save it again as PNG or JPEG.',
};

const AUDIO_REASONS: typeof REASONS = {
  ...REASONS,
  undecodable:
    'cannot be decoded: the file is empty, damaged or cut off, or has a sample rate below 8 kHz or above 192 kHz. Send it again, or save it as WAV or FLAC.',
  encoding:
    'has samples in an encoding that is not supported, such as ADPCM or GSM. Save it as WAV with PCM samples, or as FLAC or MP3.',
  too_large: `is longer than ${MOST_SECONDS} seconds. Send it in parts.`,
  crash: 'could not be decoded: the decoder ended. Save it again as WAV or FLAC.',
};

/** Tells whether a request contains media of a kind. */
export function hasMedia(work: Work, kind: MediaKind): boolean {
  return mediaOfWork(work).some(({ type }) => type === kind);
}

function checkCount(work: Work, kind: MediaKind): void {
  const extra = mediaOfWork(work).filter(({ type }) => type === kind)[MOST_MEDIA];
  if (!extra) return;
  const name = kind === 'image' ? 'image' : 'recording';
  const message = `${extra.param} is one ${name} too many: a request may have ${MOST_MEDIA}. Send fewer.`;
  throw new AssayError('invalid_value', message, { param: extra.param });
}

/**
 * Returns the bytes of an image or audio part's file; null if the part is a web address. Throws `invalid_value`, which
 * names the part, for invalid base64, another kind of URL or an unsupported format.
 */
export function mediaBytes({ type: kind, source, param }: MediaPart): Uint8Array | null {
  if (source.type === 'url' && /^https?:/iu.test(source.url)) return null;
  const refuse = (message: string): never => {
    throw new AssayError('invalid_value', `${param} ${message}`, { param });
  };
  const { data } = source.type === 'base64' ? source : (splitDataUrl(source.url) ?? refuse(NO_FILE));
  const text = data.replace(/[\t\n\r ]+/gu, '');
  if (text.length % 4 !== 0 || !BASE64.test(text)) return refuse('is not valid base64. Encode the file again.');
  const bytes = Buffer.from(text, 'base64');
  // The stated type is not compared: many clients send one type for all images.
  checkFormat(kind, bytes, param);
  return bytes;
}

/**
 * Returns the media type of an image or audio file (`kind`) by its first bytes. Throws `invalid_value` if its format is
 * not supported for that kind.
 *
 * @param param path of the part in the request, for the message
 */
function checkFormat(kind: MediaKind, bytes: Uint8Array, param: string): ImageType | AudioType {
  const type = kind === 'image' ? sniffImage(bytes) : sniffAudio(bytes);
  if (type) return type;
  throw new AssayError('invalid_value', `${param} is not in a supported format. Send ${NAMES[kind]}.`, { param });
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/u;
const named = (types: readonly string[]) => types.map((type) => type.replace(/^.*\//u, '').toUpperCase()).join(', ');
const NAMES = { image: named(IMAGE_TYPES), audio: named(AUDIO_TYPES).replace('MPEG', 'MP3') };
const NO_FILE = 'is neither a data: URL with base64 nor a web address. Send the file as base64 or as a data: URL.';

/** Returns the image and audio parts of a request: first those of `batch.media`, then those in messages. */
export function mediaOfWork(work: Work): MediaPart[] {
  const parts = messagesOf(work).flatMap((message) => message.parts);
  const inMessages = parts.filter((part): part is MediaPart => part.type !== 'text');
  return work.kind === 'tasks' ? [...work.batch.media, ...inMessages] : inMessages;
}

function messagesOf(work: Work): readonly ChatMessage[] {
  if (work.kind === 'chat') return work.request.messages;
  return 'messages' in work.batch.input ? work.batch.input.messages : [];
}

/** Returns a copy of the request in which `replace` has replaced each image or audio part. */
function mapMedia(work: Work, replace: (part: MediaPart) => MediaPart): Work {
  const mapPart = (part: Part) => (part.type === 'text' ? part : replace(part));
  const messages = messagesOf(work).map((message) => ({ ...message, parts: message.parts.map(mapPart) }));
  if (work.kind === 'chat') return { kind: 'chat', request: { ...work.request, messages } };
  const { input, media } = work.batch;
  const mapped = 'messages' in input ? { messages } : input;
  return { kind: 'tasks', batch: { ...work.batch, input: mapped, media: media.map(replace) } };
}

/**
 * Returns a copy of the request for the log: base64 data and data: URLs are replaced by the file's size and SHA-256.
 */
export function withoutFiles(work: Work): Work {
  return mapMedia(work, (part) => {
    const { source } = part;
    if (source.type === 'url' && !/^data:/iu.test(source.url)) return part;
    const file = source.type === 'base64' ? source : splitDataUrl(source.url);
    // A data URL that cannot be split is refused later; the log does not show it.
    const { mimeType, data } = file ?? { mimeType: '', data: '' };
    const bytes = Buffer.from(data, 'base64');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    return { ...part, source: { type: 'base64', mimeType, data: `${bytes.length} bytes, sha256 ${sha256}` } };
  });
}

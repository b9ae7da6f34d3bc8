import { type InferenceSession, Tensor } from 'onnxruntime-node';
import type { ChatMessage, MediaPart } from '../../lib/contract/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { floatsOf } from '../engine/forward/forward.ts';
import { FIRST_MEDIA_ID, type MediaFeatures } from '../engine/forward/media-feeds.ts';
import { MOST_SECONDS, PREPARED_RATE } from '../media/audio/limits.ts';
import type { Detail, EncoderInput, MediaFamily, MediaLayout, Size } from '../media/families/family.ts';
import { type MediaPlan, preparedBytes } from '../media/media-plan.ts';
import { deepstackNames } from '../onnx/rewrites/fuse-embeddings.ts';
import type { PreparedMedia, WantedMedia, Work } from '../protocol/messages.ts';
import type { MediaText } from '../text/segment.ts';

/**
 * Holds an image or a recording of a request: its text and token ids in prompts, and its features once it is encoded.
 */
export interface MediaItem {
  sha256: string;
  detail: Detail;
  firstId: number;
  layout: MediaLayout;
  /** Encoded features, `[layout.tokens, width]`; null until they are computed. */
  rows: Float32Array | null;
  /** Resolves when the encoding that is under way ends, even if it fails; null if none is. */
  encoding: Promise<void> | null;
}

/** Runs a task between two steps of the engine, and returns its result. */
export type BetweenSteps = <T>(work: () => Promise<T>) => Promise<T>;

/** Default of the maximum bytes of cached features. */
const CACHE_BYTES = 256 * 2 ** 20;
/** Maximum number of images or recordings that are cached, encoded or not. */
const CACHE_ENTRIES = 1024;

/**
 * Encodes the images or recordings of requests, and caches the features of recent ones. An item is identified by the
 * SHA-256 of its file and the detail. Its token ids are never reused for another item.
 */
export class MediaEncoder implements MediaText {
  readonly kind: MediaFamily['kind'];
  readonly mark: string;
  readonly inText: boolean;
  readonly #family: MediaFamily;
  readonly #encoder: InferenceSession;
  readonly #width: number;
  readonly #cacheBytes: number;
  /** Names of the encoder's outputs that make up a row of features, in order. */
  readonly #outputs: readonly string[];
  /** Cached items by file and detail, the least recently used first. */
  readonly #recent = new Map<string, MediaItem>();
  #nextId = FIRST_MEDIA_ID;

  /**
   * @param width number of values in a row of features
   * @param cacheBytes maximum bytes of features that are cached for further requests about the same media
   */
  constructor(family: MediaFamily, encoder: InferenceSession, width: number, cacheBytes = CACHE_BYTES) {
    this.kind = family.kind;
    this.mark = family.mark;
    this.inText = family.kind === 'audio' && (family.inText ?? false);
    this.#family = family;
    this.#encoder = encoder;
    this.#width = width;
    this.#cacheBytes = cacheBytes;
    this.#outputs = [family.output, ...deepstackNames(encoder.outputNames)];
  }

  /** Returns the samples at 16 kHz of the longest recording with at most `tokens` tokens; undefined for images. */
  mostSamples(tokens: number): number | undefined {
    const family = this.#family;
    if (family.kind !== 'audio') return undefined;
    // Binary search: a longer recording never has fewer tokens.
    let [fits, tooLong] = [0, MOST_SECONDS * PREPARED_RATE + 1];
    while (tooLong - fits > 1) {
      const middle = Math.floor((fits + tooLong) / 2);
      if (family.layout(middle).tokens <= tokens) fits = middle;
      else tooLong = middle;
    }
    return fits;
  }

  /**
   * Returns the media items of a request, each once. Their files must have been opened (`MediaPart.opened`). Throws
   * `invalid_value` for an image whose sides differ by more than the factor `mostAspect` of its family. The request's
   * prompts must be written in the same turn of the event loop: until then all its items stay in the cache, whatever
   * their size, so `write` gives the token ids of these items.
   */
  of(work: Work): MediaItem[] {
    this.#evict();
    return [...new Set(partsOf(work, this.kind).map((part) => this.#item(part)))];
  }

  /**
   * Returns the files and plans that the server must prepare and send before these items can be encoded: those without
   * features.
   */
  wanted(media: readonly MediaItem[]): WantedMedia[] {
    return media.flatMap(({ sha256, detail, layout, rows }) => (rows ? [] : [{ sha256, detail, plan: layout.plan }]));
  }

  write(part: MediaPart): { text: string; token: number; firstId: number } {
    const { layout, firstId } = this.#item(part);
    return { text: layout.text, token: this.#family.token, firstId };
  }

  /**
   * Computes the features of the items that have none, one tile or section at a time between the engine's steps, so
   * other requests are not held up. Returns the number of items that it encoded. Rejects with the signal's reason after
   * an abort, and with another error if prepared data are missing or do not fit their plan, or the encoder fails.
   *
   * @param prepared decoded content of at least the items that `wanted` returned
   */
  async encode(
    media: readonly MediaItem[],
    prepared: readonly PreparedMedia[],
    { between, signal }: { between: BetweenSteps; signal: AbortSignal },
  ): Promise<number> {
    let encoded = 0;
    for (const item of media) {
      // Another request may be encoding the same file.
      while (item.encoding) await item.encoding;
      if (item.rows) continue;
      const found = prepared.find(({ sha256, detail }) => sha256 === item.sha256 && detail === item.detail);
      if (!found) throw new Error('the prepared media are missing');
      const ended = Promise.withResolvers<void>();
      item.encoding = ended.promise;
      try {
        item.rows = await this.#encode(item.layout, found.data, (tile) => {
          signal.throwIfAborted();
          return between(tile);
        });
        encoded++;
      } finally {
        item.encoding = null;
        ended.resolve();
      }
    }
    this.#evict();
    return encoded;
  }

  async #encode({ plan, tokens }: MediaLayout, data: Uint8Array, between: BetweenSteps): Promise<Float32Array> {
    const { total, piece } = preparedBytes(plan);
    if (data.length !== total) throw new Error('a prepared image or recording does not fit its plan');
    const rows = new Float32Array(tokens * this.#width);
    let into = 0;
    for (let from = 0; from < data.length; from += piece) {
      const features = await between(() => this.#encodePiece(data.subarray(from, from + piece), plan));
      if (into + features.length > rows.length) throw new Error('the encoder gives too many features');
      rows.set(features, into);
      into += features.length;
    }
    if (into !== rows.length) throw new Error('the encoder gives too few features');
    return rows;
  }

  async #encodePiece(piece: Uint8Array, plan: MediaPlan): Promise<Float32Array> {
    const { inputNames } = this.#encoder;
    const inputs = inputsOf(this.#family, piece, plan).filter(({ name }) => inputNames.includes(name));
    const feeds = inputs.map(({ name, type, data, dims }) => [name, new Tensor(type, data, dims)] as const);
    const results = await this.#encoder.run(Object.fromEntries(feeds));
    const features = sideBySide(
      this.#outputs.map((name) => floatsOf(results, name)),
      this.#width,
    );
    const used = usedFeatures(this.#family, piece, plan);
    return used === undefined ? features : features.subarray(0, used * this.#width);
  }

  #item({ opened, detail: asked, param }: MediaPart): MediaItem {
    if (!opened) throw new Error(`${param} was not opened`);
    if (this.#family.kind === 'image' && 'width' in opened) checkAspect(opened, this.#family.mostAspect, param);
    const detail: Detail = asked === 'low' ? 'low' : 'high';
    const key = `${opened.sha256}/${detail}`;
    const known = this.#recent.get(key);
    if (known) this.#recent.delete(key);
    const item = known ?? this.#fresh(opened, detail);
    this.#recent.set(key, item);
    return item;
  }

  #fresh(opened: NonNullable<MediaPart['opened']>, detail: Detail): MediaItem {
    const { sha256 } = opened;
    const layout = layoutOf(this.#family, opened, detail);
    const firstId = this.#nextId;
    this.#nextId += layout.tokens;
    return { sha256, detail, firstId, layout, rows: null, encoding: null };
  }

  /**
   * Removes the least recently used items beyond the cache's limits. Requests under way keep references to their items.
   */
  #evict(): void {
    let bytes = 0;
    for (const [index, [key, { rows }]] of [...this.#recent].reverse().entries()) {
      bytes += rows?.byteLength ?? 0;
      if (index >= CACHE_ENTRIES || bytes > this.#cacheBytes) this.#recent.delete(key);
    }
  }
}

/** Joins the vectors of several outputs, `[tokens, width / outputs]` each, into rows of `width`. */
function sideBySide(outputs: readonly Float32Array[], width: number): Float32Array {
  const [first] = outputs;
  if (first && outputs.length === 1) return first;
  const part = width / outputs.length;
  const rows = new Float32Array(outputs.reduce((sum, { length }) => sum + length, 0));
  for (const [index, values] of outputs.entries()) {
    if (values.length * outputs.length !== rows.length) throw new Error('the outputs of the encoder differ in length');
    for (let from = 0, into = index * part; from < values.length; from += part, into += width)
      rows.set(values.subarray(from, from + part), into);
  }
  return rows;
}

function layoutOf(family: MediaFamily, opened: NonNullable<MediaPart['opened']>, detail: Detail): MediaLayout {
  if (family.kind === 'image' && 'width' in opened) return family.layout(opened, detail);
  if (family.kind === 'audio' && 'samples' in opened) return family.layout(opened.samples);
  throw new Error('a part was opened as another kind');
}

/** Returns how many of the features of a piece are used; undefined for all. */
function usedFeatures(family: MediaFamily, piece: Uint8Array, plan: MediaPlan): number | undefined {
  if (family.kind === 'audio') return family.used?.(piece);
  return 'tile' in plan ? family.used?.(plan.tile) : undefined;
}

function inputsOf(family: MediaFamily, piece: Uint8Array, plan: MediaPlan): readonly EncoderInput[] {
  if (family.kind === 'audio') return family.inputs(piece);
  if (!('tile' in plan)) throw new Error('an image was prepared as a recording');
  return family.inputs(piece, plan.tile);
}

/**
 * Throws `invalid_value` for an image whose longer side is more than `most` times the shorter one.
 *
 * @param param path of the image in the request, for the message
 */
function checkAspect({ width, height }: Size, most: number | undefined, param: string): void {
  if (!most || Math.max(width, height) <= most * Math.min(width, height)) return;
  const message = `${param} is ${width} × ${height} pixels: one side is more than ${most} times the other. Crop it.`;
  throw new AssayError('invalid_value', message, { param });
}

/** Converts encoded items to the features that the engine feeds to the model. Throws if an item is not encoded. */
export function featuresOf(items: readonly MediaItem[]): MediaFeatures[] {
  return items.map(({ firstId, layout, rows }) => {
    if (!rows) throw new Error('an image or a recording is not encoded');
    const columns = 'columns' in layout ? layout.columns : undefined;
    return { firstId, count: layout.tokens, rows, ...(columns ? { columns } : {}) };
  });
}

function partsOf(work: Work, kind: MediaFamily['kind']): MediaPart[] {
  const inMessages = (messages: readonly ChatMessage[]) => messages.flatMap(({ parts }) => parts);
  const parts =
    work.kind === 'chat'
      ? inMessages(work.request.messages)
      : [...work.batch.media, ...('messages' in work.batch.input ? inMessages(work.batch.input.messages) : [])];
  return parts.filter((part): part is MediaPart => part.type === kind);
}

import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { ChatMessage, MediaPart } from '../../lib/conversation.ts';
import type { Manifest } from '../compile/manifest.ts';
import { FIRST_MEDIA_ID, type MediaFeatures } from '../engine/media-feeds.ts';
import { sessionOptions } from '../engine/model.ts';
import type { Detail, MediaFamily, MediaLayout } from '../media/families/family.ts';
import { preparedBytes } from '../media/media-plan.ts';
import type { PreparedMedia, WantedMedia, Work } from '../protocol/messages.ts';
import type { PictureText } from '../text/segment.ts';

/** Holds a picture of a request: its text in prompts, and its features once it is encoded. */
export interface Picture {
  sha256: string;
  detail: Detail;
  firstId: number;
  layout: MediaLayout;
  /** `[layout.tokens, width]`; null until it is encoded. */
  rows: Float32Array | null;
  /** Resolves when the current encoding ends, even if it fails. */
  encoding: Promise<void> | null;
}

/** Runs a piece of work between two steps of the engine. */
export type BetweenSteps = <T>(work: () => Promise<T>) => Promise<T>;

/** Bytes of features that are kept for further requests about the same pictures. */
const CACHE_BYTES = 256 * 2 ** 20;
/** Pictures that are kept, encoded or not. */
const CACHE_PICTURES = 1024;

/**
 * Encodes the pictures of requests, and keeps the features of recent ones. A picture is identified by the bytes of its
 * file and the detail; it has ids of its own, which are never used again for another one.
 */
export class Pictures implements PictureText {
  readonly kind: MediaFamily['kind'];
  readonly mark: string;
  readonly #family: MediaFamily;
  readonly #encoder: InferenceSession;
  readonly #width: number;
  /** Recent pictures, the least recently used first. */
  readonly #recent = new Map<string, Picture>();
  #nextId = FIRST_MEDIA_ID;

  constructor(family: MediaFamily, encoder: InferenceSession, width: number) {
    this.kind = family.kind;
    this.mark = family.mark;
    this.#family = family;
    this.#encoder = encoder;
    this.#width = width;
  }

  /** Returns the pictures of a request, each once. Its parts have been opened. */
  of(work: Work): Picture[] {
    const pictures = [...new Set(partsOf(work, this.kind).map((part) => this.#picture(part)))];
    this.#evict();
    return pictures;
  }

  /** Returns what the server has to send before these pictures can be encoded. */
  wanted(pictures: readonly Picture[]): WantedMedia[] {
    return pictures.flatMap(({ sha256, detail, layout, rows }) =>
      rows ? [] : [{ sha256, detail, plan: layout.plan }],
    );
  }

  write(part: MediaPart): { text: string; token: number; firstId: number } {
    const { layout, firstId } = this.#picture(part);
    return { text: layout.text, token: this.#family.token, firstId };
  }

  /**
   * Encodes the pictures that have no features yet, tile by tile between the engine's steps, so that other requests
   * continue. Returns the number of pictures encoded.
   */
  async encode(
    pictures: readonly Picture[],
    pixels: readonly PreparedMedia[],
    { between, signal }: { between: BetweenSteps; signal: AbortSignal },
  ): Promise<number> {
    let encoded = 0;
    for (const picture of pictures) {
      // Another request about the same picture may have come first.
      while (picture.encoding) await picture.encoding;
      if (picture.rows) continue;
      const found = pixels.find(({ sha256, detail }) => sha256 === picture.sha256 && detail === picture.detail);
      if (!found) throw new Error('the pixels of a picture are missing');
      const ended = Promise.withResolvers<void>();
      picture.encoding = ended.promise;
      try {
        picture.rows = await this.#encode(picture.layout, found.data, (tile) => {
          signal.throwIfAborted();
          return between(tile);
        });
        encoded++;
      } finally {
        picture.encoding = null;
        ended.resolve();
      }
    }
    this.#evict();
    return encoded;
  }

  async #encode({ plan, tokens }: MediaLayout, data: Uint8Array, between: BetweenSteps): Promise<Float32Array> {
    const { total, piece } = preparedBytes(plan);
    if (data.length !== total) throw new Error('a prepared picture or recording does not fit its plan');
    const rows = new Float32Array(tokens * this.#width);
    const side = 'side' in plan ? plan.side : 0;
    let into = 0;
    for (let from = 0; from < data.length; from += piece) {
      const features = await between(() => this.#encodePiece(data.subarray(from, from + piece), side));
      if (into + features.length > rows.length) throw new Error('the encoder gives too many features');
      rows.set(features, into);
      into += features.length;
    }
    if (into !== rows.length) throw new Error('the encoder gives too few features');
    return rows;
  }

  async #encodePiece(piece: Uint8Array, side: number): Promise<Float32Array> {
    const { inputNames } = this.#encoder;
    const inputs = this.#family.inputs(piece, side).filter(({ name }) => inputNames.includes(name));
    const feeds = inputs.map(({ name, type, data, dims }) => [name, new Tensor(type, data, dims)] as const);
    const results = await this.#encoder.run(Object.fromEntries(feeds));
    const data = results[this.#family.output]?.data;
    if (!(data instanceof Float32Array)) throw new Error(`the encoder gives no ${this.#family.output} in floats`);
    return data;
  }

  #picture({ opened, detail: asked, param }: MediaPart): Picture {
    if (!opened) throw new Error(`${param} was not opened`);
    const detail: Detail = asked === 'low' ? 'low' : 'high';
    const key = `${opened.sha256}/${detail}`;
    const known = this.#recent.get(key);
    if (known) this.#recent.delete(key);
    const picture = known ?? this.#fresh(opened, detail);
    this.#recent.set(key, picture);
    return picture;
  }

  #fresh(opened: NonNullable<MediaPart['opened']>, detail: Detail): Picture {
    const { sha256 } = opened;
    const layout = layoutOf(this.#family, opened, detail);
    const firstId = this.#nextId;
    this.#nextId += layout.tokens;
    return { sha256, detail, firstId, layout, rows: null, encoding: null };
  }

  /** Forgets the pictures that were used longest ago. Requests in progress keep theirs. */
  #evict(): void {
    let bytes = 0;
    for (const [index, [key, { rows }]] of [...this.#recent].reverse().entries()) {
      bytes += rows?.byteLength ?? 0;
      if (index >= CACHE_PICTURES || bytes > CACHE_BYTES) this.#recent.delete(key);
    }
  }
}

/** Opens the encoder of a compiled model. */
export async function openPictures(
  dir: string,
  { encoder, width }: NonNullable<Manifest['media']>,
  family: MediaFamily,
  threads: number | undefined,
): Promise<Pictures> {
  const options = { ...(await sessionOptions(threads)), executionProviders: ['cpu'] };
  return new Pictures(family, await InferenceSession.create(join(dir, encoder), options), width);
}

function layoutOf(family: MediaFamily, opened: NonNullable<MediaPart['opened']>, detail: Detail): MediaLayout {
  if (family.kind === 'image' && 'width' in opened) return family.layout(opened, detail);
  if (family.kind === 'audio' && 'samples' in opened) return family.layout(opened.samples);
  throw new Error('a part was opened as another kind');
}

/** Returns the features of encoded pictures as the engine takes them. */
export function featuresOf(pictures: readonly Picture[]): MediaFeatures[] {
  return pictures.map(({ firstId, layout, rows }) => {
    if (!rows) throw new Error('a picture is not encoded');
    return { firstId, count: layout.tokens, rows };
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

import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { FairTurns } from '../../../lib/limits/fair-turns.ts';
import type { DocumentFormat } from '../../media/document-text.ts';
import type { MediaPlan } from '../../media/media-plan.ts';
import { FromMedia, type ToMedia } from '../../media/messages.ts';
import { Child, childEntry } from '../../process/child.ts';
import { type Isolation, NO_ISOLATION } from '../isolation/isolation.ts';

/** Holds the content of an image or audio file of a request, and the SHA-256 of its bytes in lower-case hex. */
export interface MediaFile {
  sha256: string;
  bytes: Uint8Array;
}

/**
 * Reasons why a file was not decoded. `undecodable`: it is damaged or has another format. `too_large`: it has too many
 * pixels or seconds. `too_long`: the model cannot read so long a recording. `too_many_samples`: see `AudioFault`.
 * `slow`: decoding exceeded the timeout. `crash`: decoding ended the process, twice if it was retried, or the server is
 * shutting down.
 */
export type FaultKind = Extract<FromMedia, { type: 'failed' }>['fault'] | 'slow' | 'crash';

/** Reports that an image or a recording was not decoded. `kind` says why; the message is for the log. */
export class MediaFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, detail: string) {
    super(detail);
    this.kind = kind;
  }
}

export interface MediaProcessOptions {
  log: Logger;
  isolation?: Isolation;
  /** Module that the process runs; tests pass their own. */
  entry?: URL;
  /**
   * Timeout of one file in milliseconds, including the start of the process; measured by `SilenceClock`. Default:
   * 30,000.
   */
  timeoutMs?: number;
}

const MEDIA_ENTRY = childEntry('../../media/media-child', import.meta.url);
/**
 * Maximum bytes that isolation allows the process in addition to Node's own memory. The largest image takes 120 MB once
 * decoded, and as much again while it is resized. The rest is for its compressed file, and for recordings, whose
 * samples are held as 32-bit floats.
 */
const MEMORY_BYTES = 2 ** 30;
const HEAP_MB = 256;
const TIMEOUT_MS = 30_000;
/** Number of attempts to decode one file. Something other than the file may have ended the process the first time. */
const TRIES = 2;
/**
 * Maximum number of recordings whose lengths are cached. A repeated recording need not be decoded to plan its prompt.
 */
const KEPT_LENGTHS = 4096;
const CLOSED = 'the server is shutting down';
/** Number of checks of a file's time within `timeoutMs`. */
const CHECKS = 20;

type WithoutId<M> = M extends unknown ? Omit<M, 'id'> : never;
type Question = WithoutId<ToMedia>;

/**
 * Decodes images and audio in a separate process, one file at a time: of the caller first that has used least time. The
 * process starts with the first file, and is restarted if it dies. If the signal of a call aborts, the call rejects
 * with the signal's reason, and a file that is still waiting is not decoded.
 */
export class MediaProcess {
  readonly #options: MediaProcessOptions;
  readonly #turns = new FairTurns();
  readonly #lengths = new Map<string, number>();
  #child: Child<ToMedia, FromMedia> | null = null;
  #asked: { id: number; reply: PromiseWithResolvers<FromMedia> } | null = null;
  #nextId = 0;
  #closed = false;

  constructor(options: MediaProcessOptions) {
    this.#options = options;
  }

  /**
   * Returns the size of an image in pixels, after its orientation is applied. Throws `MediaFault` if it cannot be read.
   */
  async size({ bytes }: MediaFile, signal: AbortSignal, caller?: string): Promise<{ width: number; height: number }> {
    const { width, height } = await this.#ask({ type: 'size', bytes }, 'size', signal, caller);
    return { width, height };
  }

  /**
   * Decodes a recording and returns its number of samples at 16 kHz. Throws `MediaFault` if it cannot be decoded, or
   * has more than `mostSamples`: by its headers, before it is decoded.
   */
  async samples(
    { sha256, bytes }: MediaFile,
    signal: AbortSignal,
    { caller, mostSamples }: { caller?: string | undefined; mostSamples?: number | undefined } = {},
  ): Promise<number> {
    const known = this.#lengths.get(sha256);
    if (known !== undefined) return known;
    const most = mostSamples === undefined ? {} : { mostSamples };
    const { samples } = await this.#ask({ type: 'length', sha256, bytes, ...most }, 'length', signal, caller);
    const [oldest] = this.#lengths.keys();
    if (this.#lengths.size >= KEPT_LENGTHS && oldest !== undefined) this.#lengths.delete(oldest);
    this.#lengths.set(sha256, samples);
    return samples;
  }

  /**
   * Returns the tiles of an image (by a `PixelPlan`), or the log-mel values of a recording as bytes of 32-bit floats
   * (by a `MelPlan`). Throws `MediaFault` if the file cannot be decoded.
   */
  async prepare(file: MediaFile, plan: MediaPlan, signal: AbortSignal, caller?: string): Promise<Uint8Array> {
    const { sha256, bytes } = file;
    if ('tile' in plan) return (await this.#ask({ type: 'pixels', bytes, plan }, 'pixels', signal, caller)).data;
    return (await this.#ask({ type: 'mel', sha256, bytes, plan }, 'mel', signal, caller)).data;
  }

  /** Returns the text of a document. Throws `MediaFault` if it cannot be read. */
  async text(bytes: Uint8Array, format: DocumentFormat, signal: AbortSignal): Promise<string> {
    return (await this.#ask({ type: 'text', bytes, format }, 'text', signal)).text;
  }

  /** The operating system's id of the media process; null if there is none. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Kills the process. Calls in progress and later ones throw `MediaFault`. */
  close(): void {
    this.#closed = true;
    this.#child?.kill('was closed');
    this.#child = null;
    this.#asked?.reply.reject(new MediaFault('crash', CLOSED));
  }

  #start(): Child<ToMedia, FromMedia> {
    const { log, isolation = NO_ISOLATION, entry = MEDIA_ENTRY } = this.#options;
    const read = entry === MEDIA_ENTRY ? [] : [dirname(fileURLToPath(entry))];
    const needs = { read, write: [], memoryBytes: MEMORY_BYTES, drivers: false };
    const started: Child<ToMedia, FromMedia> = new Child<ToMedia, FromMedia>(
      {
        entry,
        launch: isolation.launch(needs, [`--max-old-space-size=${HEAP_MB}`]),
        received: FromMedia,
        output: { log, name: 'media process' },
        watchMs: this.#timeoutMs / CHECKS,
      },
      {
        message: (reply) => started === this.#child && this.#onReply(reply),
        exit: (reason, silent) => started === this.#child && this.#onGone(reason, silent),
      },
    );
    return started;
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? TIMEOUT_MS;
  }

  #onReply(reply: FromMedia): void {
    if (reply.id === this.#asked?.id) this.#asked.reply.resolve(reply);
    else this.#child?.kill('answered another question');
  }

  #onGone(reason: string, slow: boolean): void {
    this.#child = null;
    if (!slow) this.#options.log.warn({ reason }, 'media process is gone');
    this.#asked?.reply.reject(new MediaFault(slow ? 'slow' : 'crash', reason));
  }

  /** Asks the process, again if it crashes and the caller still waits. It must be the caller's turn. */
  async #decode(question: Question, signal: AbortSignal): Promise<FromMedia> {
    for (let tries = TRIES; ; tries--) {
      if (this.#closed) throw new MediaFault('crash', CLOSED);
      const asked = { id: this.#nextId++, reply: Promise.withResolvers<FromMedia>() };
      this.#asked = asked;
      this.#child ??= this.#start();
      this.#child.limitSilence({ ms: this.#timeoutMs, failedTo: 'did not decode a file' });
      this.#child.send({ ...question, id: asked.id });
      try {
        return await asked.reply.promise;
      } catch (fault) {
        const again = fault instanceof MediaFault && fault.kind === 'crash' && tries > 1;
        if (!again || this.#closed || signal.aborted) throw fault;
      } finally {
        this.#asked = null;
        this.#child?.limitSilence(null);
      }
    }
  }

  /** Asks the process in turn, and returns its reply, which must be of the type `expected`. */
  async #ask<Type extends FromMedia['type']>(
    question: Question,
    expected: Type,
    signal: AbortSignal,
    caller = '',
  ): Promise<Extract<FromMedia, { type: Type }>> {
    // A file that is being decoded is finished although no caller waits for it: that is faster than restarting the
    // process.
    const reply = await this.#turns.run(caller, () => this.#decode(question, signal), signal);
    if (reply.type === 'failed') throw new MediaFault(reply.fault, reply.detail);
    if (reply.type !== expected) throw new MediaFault('crash', 'the media process answered another question');
    // A cast: TypeScript does not narrow a union by a generic type.
    return reply as Extract<FromMedia, { type: Type }>;
  }
}

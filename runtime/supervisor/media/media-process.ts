import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { FairShares } from '../../../lib/limits/fair-shares.ts';
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
 * Decodes images and audio in a separate process, one file at a time: of the caller first that has used least time. The
 * process starts with the first file, and is restarted if it dies. If the signal of a call aborts, the call rejects
 * with the signal's reason, and a file that is still waiting is not decoded.
 */
export interface MediaProcess {
  /**
   * Returns the size of an image in pixels, after its orientation is applied. Throws `MediaFault` if it cannot be read.
   */
  size(file: MediaFile, signal: AbortSignal, caller?: string): Promise<{ width: number; height: number }>;
  /**
   * Decodes a recording and returns its number of samples at 16 kHz. Throws `MediaFault` if it cannot be decoded, or
   * has more than `mostSamples`: by its headers, before it is decoded.
   */
  samples(
    file: MediaFile,
    signal: AbortSignal,
    options?: { caller?: string | undefined; mostSamples?: number | undefined },
  ): Promise<number>;
  /**
   * Returns the tiles of an image (by a `PixelPlan`), or the log-mel values of a recording as bytes of 32-bit floats
   * (by a `MelPlan`). Throws `MediaFault` if the file cannot be decoded.
   */
  prepare(file: MediaFile, plan: MediaPlan, signal: AbortSignal, caller?: string): Promise<Uint8Array>;
  /** Returns the text of a document. Throws `MediaFault` if it cannot be read. */
  text(bytes: Uint8Array, format: DocumentFormat, signal: AbortSignal): Promise<string>;
  /** The operating system's id of the media process; null if there is none. */
  readonly pid: number | null;
  /** Kills the process. Calls in progress and later ones throw `MediaFault`. */
  close(): void;
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
/** Number of checks of a file's time within `timeoutMs`. */
const CHECKS = 20;

type WithoutId<M> = M extends unknown ? Omit<M, 'id'> : never;
type Question = WithoutId<ToMedia>;

interface Job {
  caller: string;
  question: Question;
  tries: number;
  resolve(reply: FromMedia): void;
  reject(fault: unknown): void;
}

/** Creates the media process. No process runs until the first file. */
export function createMediaProcess(options: MediaProcessOptions): MediaProcess {
  const { log, isolation = NO_ISOLATION, entry = MEDIA_ENTRY, timeoutMs = TIMEOUT_MS } = options;
  const waiting: Job[] = [];
  const shares = new FairShares();
  const lengths = new Map<string, number>();
  let child: Child<ToMedia, FromMedia> | null = null;
  let current: { job: Job; id: number; begin: number } | null = null;
  let nextId = 0;
  let closed = false;

  function start(): Child<ToMedia, FromMedia> {
    const read = entry === MEDIA_ENTRY ? [] : [dirname(fileURLToPath(entry))];
    const needs = { read, write: [], memoryBytes: MEMORY_BYTES, drivers: false };
    const started: Child<ToMedia, FromMedia> = new Child<ToMedia, FromMedia>(
      {
        entry,
        launch: isolation.launch(needs, [`--max-old-space-size=${HEAP_MB}`]),
        received: FromMedia,
        output: { log, name: 'media process' },
        watchMs: timeoutMs / CHECKS,
      },
      {
        message: (reply) => started === child && onReply(reply),
        exit: (reason, silent) => started === child && onGone(reason, silent),
      },
    );
    return started;
  }

  function next(): void {
    if (current || closed) return;
    const used = waiting.map(({ caller }) => shares.used(caller));
    const [job] = waiting.splice(used.indexOf(Math.min(...used)), 1);
    if (!job) return;
    child ??= start();
    const id = nextId++;
    current = { job, id, begin: performance.now() };
    child.limitSilence({ ms: timeoutMs, failedTo: 'did not decode a file' });
    child.send({ ...job.question, id });
  }

  /** Settles the job in progress with `settle`, then starts the next one. */
  function finish(settle: (job: Job) => void): void {
    const ended = current;
    current = null;
    if (!ended) return;
    child?.limitSilence(null);
    shares.charge(ended.job.caller, performance.now() - ended.begin);
    settle(ended.job);
    // Deferred until the caller of `finish` has replaced or ended the process.
    queueMicrotask(next);
  }

  function onReply(reply: FromMedia): void {
    if (reply.id !== current?.id) {
      child?.kill('answered another question');
      return;
    }
    finish((job) => {
      if (reply.type === 'failed') job.reject(new MediaFault(reply.fault, reply.detail));
      else job.resolve(reply);
    });
  }

  function onGone(reason: string, slow: boolean): void {
    child = null;
    if (!slow) log.warn({ reason }, 'media process is gone');
    finish((job) => {
      if (slow) job.reject(new MediaFault('slow', reason));
      else if (--job.tries > 0 && !closed) waiting.unshift(job);
      else job.reject(new MediaFault('crash', reason));
    });
  }

  async function ask(question: Question, signal: AbortSignal, caller = ''): Promise<FromMedia> {
    if (closed) throw new MediaFault('crash', 'the server is shutting down');
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<FromMedia>();
    const job: Job = { caller, question, tries: TRIES, resolve, reject };
    shares.add(caller);
    // A file that is being decoded is finished although no caller waits for it: that is faster than restarting the
    // process.
    const leave = () => {
      const place = waiting.indexOf(job);
      if (place >= 0) waiting.splice(place, 1);
      job.tries = 0;
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave);
    waiting.push(job);
    next();
    return promise.finally(() => {
      shares.remove(caller, performance.now());
      signal.removeEventListener('abort', leave);
    });
  }

  return {
    async size({ bytes }, signal, caller) {
      const reply = await ask({ type: 'size', bytes }, signal, caller);
      if (reply.type !== 'size') throw new MediaFault('crash', 'the media process answered another question');
      return { width: reply.width, height: reply.height };
    },
    async samples({ sha256, bytes }, signal, { caller, mostSamples } = {}) {
      const known = lengths.get(sha256);
      if (known !== undefined) return known;
      const most = mostSamples === undefined ? {} : { mostSamples };
      const reply = await ask({ type: 'length', sha256, bytes, ...most }, signal, caller);
      if (reply.type !== 'length') throw new MediaFault('crash', 'the media process answered another question');
      const [oldest] = lengths.keys();
      if (lengths.size >= KEPT_LENGTHS && oldest !== undefined) lengths.delete(oldest);
      lengths.set(sha256, reply.samples);
      return reply.samples;
    },
    async prepare({ sha256, bytes }, plan, signal, caller) {
      const question: Question =
        'tile' in plan ? { type: 'pixels', bytes, plan } : { type: 'mel', sha256, bytes, plan };
      const reply = await ask(question, signal, caller);
      if (reply.type !== 'pixels' && reply.type !== 'mel') {
        throw new MediaFault('crash', 'the media process answered another question');
      }
      return reply.data;
    },
    async text(bytes, format, signal) {
      const reply = await ask({ type: 'text', bytes, format }, signal);
      if (reply.type !== 'text') throw new MediaFault('crash', 'the media process answered another question');
      return reply.text;
    },
    get pid() {
      return child?.pid ?? null;
    },
    close() {
      closed = true;
      child?.kill('was closed');
      child = null;
      const fault = new MediaFault('crash', 'the server is shutting down');
      finish((job) => job.reject(fault));
      for (const job of waiting.splice(0)) job.reject(fault);
    },
  };
}

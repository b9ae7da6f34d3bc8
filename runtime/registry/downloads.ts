import { setTimeout as sleep } from 'node:timers/promises';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { DownloadReport, HostDownloadEvent, ModelHost } from '../../lib/models/host.ts';
import { ChangeSignal } from '../supervisor/change-signal.ts';
import type { ModelRegistry } from './model-registry.ts';

export type DownloadStep = Extract<HostDownloadEvent, { type: 'progress' }>;
export type DownloadOptions = Parameters<ModelHost['download']>[1];
type Download = FollowedOperation<DownloadStep, DownloadReport> & { readonly options: DownloadOptions };

/** Holds the functions that admit and run a download, and its timeout. */
export interface DownloadSettings {
  registry: Pick<ModelRegistry, 'apply'>;
  /**
   * Downloads and compiles one model. `unfollowed` aborts once no caller has followed the download for `unfollowedMs`.
   */
  download(
    model: ModelId,
    options: DownloadOptions,
    report: (progress: DownloadStep) => void,
    unfollowed: AbortSignal,
  ): Promise<DownloadReport>;
  /** Milliseconds without a following caller after which `unfollowed` aborts. */
  unfollowedMs: number;
}

/** Runs at most one download per model, which any number of callers can follow. */
export class Downloads {
  readonly #running = new Map<ModelId, Download>();
  readonly #settings: DownloadSettings;

  constructor(settings: DownloadSettings) {
    this.#settings = settings;
  }

  /**
   * Follows the running download of a model, or begins one. Yields its progress, then its report (`done`). If the
   * running download may deliver less than `options` asks for, begins another one when it has ended.
   *
   * @param leaving aborts when this caller leaves; the download continues
   * @throws AssayError `operation_in_progress` if the model is being deleted, or downloaded with a different
   *   `maxPromptLen`; the error of the download; the reason of `leaving` if it aborts
   */
  async *follow(model: ModelId, options: DownloadOptions, leaving?: AbortSignal): AsyncGenerator<HostDownloadEvent> {
    for (;;) {
      const running = this.#running.get(model) ?? this.#begin(model, options);
      const first = running.options;
      const wanted = options.maxPromptLen ?? first.maxPromptLen;
      if (first.maxPromptLen !== undefined && first.maxPromptLen !== wanted) {
        const other = `${model} is being downloaded with another max_prompt_len. Try again when it has finished.`;
        throw new AssayError('operation_in_progress', other, { param: 'max_prompt_len' });
      }
      // A running download may deliver less than this caller asks for: it may not be allowed to use the hub, or it may
      // compile for the default prompt length, which is only known at its end.
      const less = options.allowDownload && !first.allowDownload;
      const report = yield* less ? resultOrUndefined(running.follow(leaving), leaving) : running.follow(leaving);
      const enough = report && !less && (wanted === undefined || report.max_prompt_len === wanted);
      if (report && (enough || first === options)) {
        yield { type: 'done', report };
        return;
      }
    }
  }

  #begin(model: ModelId, options: DownloadOptions): Download {
    const { registry, unfollowedMs } = this.#settings;
    registry.apply(model, 'download');
    const operation = new FollowedOperation<DownloadStep, DownloadReport>(async (report, unfollowed) => {
      const reported = (progress: DownloadStep) => {
        registry.apply(model, progress.stage, progress);
        report(progress);
      };
      try {
        return await this.#settings.download(model, options, reported, unfollowed);
      } finally {
        this.#running.delete(model);
        registry.apply(model, 'ended');
      }
    }, unfollowedMs);
    const download = Object.assign(operation, { options });
    this.#running.set(model, download);
    return download;
  }

  /** Resolves once all downloads have ended, successfully or not, or after `timeoutMs`. */
  async settled(timeoutMs: number): Promise<void> {
    const all = Promise.allSettled([...this.#running.values()].map((download) => download.result));
    await Promise.race([all, sleep(timeoutMs, undefined, { ref: false })]);
  }
}

/**
 * Follows the work of another caller. Returns undefined if it fails, because that caller reports the error. Throws the
 * reason of `leaving` if this caller leaves.
 */
async function* resultOrUndefined<P, R>(
  work: AsyncGenerator<P, R>,
  leaving?: AbortSignal,
): AsyncGenerator<P, R | undefined> {
  try {
    return yield* work;
  } catch {
    leaving?.throwIfAborted();
    return undefined;
  }
}

/**
 * Runs long work that any number of callers can follow. It continues after they leave, and later callers see the
 * current progress. A new progress report replaces one that was not read, so a slow reader delays nothing.
 */
export class FollowedOperation<Progress, Result> {
  readonly result: Promise<Result>;
  readonly #unfollowedMs: number;
  readonly #unfollowed = new AbortController();
  #followers = 0;
  #unfollowedTimer: NodeJS.Timeout | undefined;
  #latest: Progress | null = null;
  #ended = false;
  #version = 0;
  readonly #changed = new ChangeSignal();

  /**
   * Starts the work.
   *
   * @param work receives a function to report progress, and a signal that aborts once no caller has followed for
   *   `unfollowedMs`; the work may ignore the signal
   * @param unfollowedMs milliseconds without a follower after which the signal aborts
   */
  constructor(
    work: (report: (progress: Progress) => void, unfollowed: AbortSignal) => Promise<Result>,
    unfollowedMs: number,
  ) {
    this.#unfollowedMs = unfollowedMs;
    const report = (progress: Progress) => {
      this.#latest = progress;
      this.#version += 1;
      this.#changed.send();
    };
    this.result = work(report, this.#unfollowed.signal).finally(() => {
      this.#ended = true;
      this.#changed.send();
    });
    // If no caller follows, nothing else handles a rejection; each follower gets the error from `result`.
    this.result.catch(() => undefined);
  }

  /** Latest progress report; null before the first. */
  get latest(): Progress | null {
    return this.#latest;
  }

  /**
   * Yields the latest progress report and the later ones, except those that are replaced before they are read; then
   * returns the result. Throws the work's error, or the reason of `leaving` if it aborts.
   */
  async *follow(leaving?: AbortSignal): AsyncGenerator<Progress, Result> {
    this.#followers += 1;
    clearTimeout(this.#unfollowedTimer);
    const left = () => this.#changed.send();
    leaving?.addEventListener('abort', left);
    try {
      let seen = 0;
      for (;;) {
        leaving?.throwIfAborted();
        const changed = this.#changed.next;
        if (this.#version > seen && this.#latest !== null) {
          seen = this.#version;
          yield this.#latest;
        } else if (this.#ended) {
          return await this.result;
        } else {
          await changed;
        }
      }
    } finally {
      leaving?.removeEventListener('abort', left);
      this.#followers -= 1;
      if (this.#followers === 0 && !this.#ended) {
        this.#unfollowedTimer = setTimeout(() => this.#unfollowed.abort(), this.#unfollowedMs).unref();
      }
    }
  }
}

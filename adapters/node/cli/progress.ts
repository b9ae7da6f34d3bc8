import { SingleBar } from 'cli-progress';
import type { DownloadProgress } from '../../../lib/schema/model-operations.ts';
import { formatBytes } from '../../../runtime/store/disk-error.ts';
import { isWatched, screen } from './screen.ts';

/** Shows the progress of a download: as a bar on a terminal, otherwise as a line every few seconds. */
export interface ProgressView {
  show(progress: DownloadProgress): void;
  end(): void;
}

const LABEL: Record<DownloadProgress['status'], string> = {
  downloading: 'Downloading',
  verifying: 'Verifying',
  compiling: 'Compiling',
};

/** Returns a bar if standard error is a terminal, otherwise lines; with `quiet`, shows nothing. */
export function progressView(quiet: boolean, now: () => number = () => performance.now()): ProgressView {
  if (quiet) return { show: () => undefined, end: () => undefined };
  return isWatched() ? barView(now) : lineView(now, screen.note);
}

/** Measures a download's speed over the last few seconds. */
class Speed {
  #seen: { at: number; bytes: number }[] = [];

  /** Adds a reading; `at` is in milliseconds. Returns the bytes per second, or null if it is too early to tell. */
  add(at: number, bytes: number): number | null {
    this.#seen.push({ at, bytes });
    while (this.#seen.length > 2 && at - (this.#seen[1]?.at ?? at) > WINDOW_MS) this.#seen.shift();
    const first = this.#seen[0];
    return first && at - first.at > 200 ? Math.max(0, ((bytes - first.bytes) / (at - first.at)) * 1000) : null;
  }
}

/** Milliseconds over which the speed is measured. */
const WINDOW_MS = 5_000;

/** Formats the bytes, the speed and the remaining time of a download, or the current step of a compile. */
export function describeProgress(progress: DownloadProgress, bytesPerSecond: number | null): string {
  const { status, bytes, total, step } = progress;
  const parts: string[] = [];
  if (total) parts.push(`${formatBytes(bytes)} of ${formatBytes(total)}`);
  if (status === 'downloading' && bytesPerSecond !== null && bytesPerSecond > 0 && total) {
    parts.push(`${formatBytes(bytesPerSecond)}/s`, `${formatSeconds((total - bytes) / bytesPerSecond)} left`);
  }
  if (step) parts.push(step);
  return parts.join(', ');
}

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function barView(now: () => number): ProgressView {
  let bar: SingleBar | null = null;
  let stage: string | null = null;
  let speed = new Speed();
  let permille = 0;
  const end = (): void => {
    bar?.stop();
    bar = null;
  };
  return {
    show(progress) {
      if (stage !== progress.status) {
        end();
        stage = progress.status;
        speed = new Speed();
        permille = 0;
        bar = new SingleBar({
          format: `${LABEL[progress.status].padEnd(11)} {bar} {percentage}%  {words}`,
          stream: process.stderr,
          barsize: 24,
          hideCursor: true,
          clearOnComplete: false,
        });
        bar.start(1000, 0, { words: '' });
      }
      const words = describeProgress(progress, speed.add(now(), progress.bytes));
      // A step without a total leaves the bar where it is.
      if (progress.total) permille = Math.round((1000 * progress.bytes) / progress.total);
      bar?.update(permille, { words });
    },
    end,
  };
}

/** Milliseconds between two lines about the same stage. */
const LINE_MS = 5_000;

/** Returns a view that prints plain lines, for logs and pipes. */
export function lineView(now: () => number, say: (line: string) => void): ProgressView {
  let stage: string | null = null;
  let last = Number.NEGATIVE_INFINITY;
  let speed = new Speed();
  return {
    show(progress) {
      const at = now();
      if (stage !== progress.status) speed = new Speed();
      const rate = speed.add(at, progress.bytes);
      if (stage === progress.status && at - last < LINE_MS) return;
      stage = progress.status;
      last = at;
      const percent = progress.total ? ` (${Math.floor((100 * progress.bytes) / progress.total)} %)` : '';
      say(`${LABEL[progress.status]} ${progress.model}: ${describeProgress(progress, rate) || 'started'}${percent}`);
    },
    end: () => undefined,
  };
}

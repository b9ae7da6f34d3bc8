import { SingleBar } from 'cli-progress';
import { DownloadSpeed, describeProgress, STAGE_LABELS } from '../../../lib/models/describe-progress.ts';
import type { DownloadProgress } from '../../../lib/schema/model-operations.ts';
import { isWatched, screen } from './screen.ts';

/** Shows how far some work is: as a bar on a terminal, otherwise as a line every few seconds. */
export interface ProgressView<T> {
  show(progress: T): void;
  end(): void;
}

/** Describes how far some work is. */
interface Moment {
  /** Name of the stage, each of which has a bar of its own. */
  stage: string;
  /** Share of the stage that is done, from 0 to 1; undefined if it is not known. */
  share: number | undefined;
  /** Text behind the bar. */
  words: string;
  /** Text of a line. */
  line: string;
}

/** Describes some progress at a time in milliseconds. */
export type Describe<T> = (progress: T, now: number) => Moment;

/** Returns a view that shows a bar if standard error is a terminal, otherwise lines; with `quiet`, nothing. */
export function progressView<T>(quiet: boolean, describe: Describe<T>): ProgressView<T> {
  if (quiet) return { show: () => undefined, end: () => undefined };
  const now = () => performance.now();
  return isWatched() ? barView(describe, now) : lineView(describe, now, screen.note);
}

function barView<T>(describe: Describe<T>, now: () => number): ProgressView<T> {
  let bar: SingleBar | null = null;
  let current: string | null = null;
  let permille = 0;
  const end = (): void => {
    bar?.stop();
    bar = null;
  };
  return {
    show(progress) {
      const { stage, share, words } = describe(progress, now());
      if (stage !== current) {
        end();
        current = stage;
        permille = 0;
        bar = new SingleBar({
          format: `${stage === '' ? '' : `${stage.padEnd(11)} `}{bar} {percentage}%  {words}`,
          stream: process.stderr,
          barsize: 24,
          hideCursor: true,
          clearOnComplete: false,
        });
        bar.start(1000, 0, { words: '' });
      }
      // A step without a total leaves the bar where it is.
      if (share !== undefined) permille = Math.round(1000 * share);
      bar?.update(permille, { words });
    },
    end,
  };
}

/** Milliseconds between two lines about the same stage. */
const LINE_MS = 5_000;

/** Returns a view that passes plain lines to `say`, for logs and pipes: at each new stage, and every `LINE_MS`. */
export function lineView<T>(describe: Describe<T>, now: () => number, say: (line: string) => void): ProgressView<T> {
  let current: string | null = null;
  let last = Number.NEGATIVE_INFINITY;
  return {
    show(progress) {
      const at = now();
      const { stage, line } = describe(progress, at);
      if (stage === current && at - last < LINE_MS) return;
      current = stage;
      last = at;
      say(line);
    },
    end: () => undefined,
  };
}

/** Returns a function that describes a download and compile. */
export function downloadMoments(): Describe<DownloadProgress> {
  const speed = new DownloadSpeed();
  return (progress, now) => {
    const stage = STAGE_LABELS[progress.status];
    const words = describeProgress(progress, speed.add(now, progress));
    const share = progress.total ? progress.bytes / progress.total : undefined;
    const percent = share === undefined ? '' : ` (${Math.floor(100 * share)} %)`;
    return { stage, share, words, line: `${stage} ${progress.model}: ${words || 'started'}${percent}` };
  };
}

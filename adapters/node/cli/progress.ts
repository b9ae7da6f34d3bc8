import { SingleBar } from 'cli-progress';
import { DownloadSpeed, describeProgress, STAGE_LABELS } from '../../../lib/models/describe-progress.ts';
import type { DownloadProgress } from '../../../lib/schema/model-operations.ts';
import { isWatched, screen } from './screen.ts';

/** Shows the progress of a download and compile: as a bar on a terminal, otherwise as a line every few seconds. */
export interface ProgressView {
  show(progress: DownloadProgress): void;
  end(): void;
}

/** Returns a view that shows a bar if standard error is a terminal, otherwise lines; with `quiet`, nothing. */
export function progressView(quiet: boolean, now: () => number = () => performance.now()): ProgressView {
  if (quiet) return { show: () => undefined, end: () => undefined };
  return isWatched() ? barView(now) : lineView(now, screen.note);
}

function barView(now: () => number): ProgressView {
  let bar: SingleBar | null = null;
  let stage: string | null = null;
  const speed = new DownloadSpeed();
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
        permille = 0;
        bar = new SingleBar({
          format: `${STAGE_LABELS[progress.status].padEnd(11)} {bar} {percentage}%  {words}`,
          stream: process.stderr,
          barsize: 24,
          hideCursor: true,
          clearOnComplete: false,
        });
        bar.start(1000, 0, { words: '' });
      }
      const words = describeProgress(progress, speed.add(now(), progress));
      // A step without a total leaves the bar where it is.
      if (progress.total) permille = Math.round((1000 * progress.bytes) / progress.total);
      bar?.update(permille, { words });
    },
    end,
  };
}

/** Milliseconds between two lines about the same stage. */
const LINE_MS = 5_000;

/** Returns a view that passes plain lines to `say`, for logs and pipes: at each new stage, and every `LINE_MS`. */
export function lineView(now: () => number, say: (line: string) => void): ProgressView {
  let stage: string | null = null;
  let last = Number.NEGATIVE_INFINITY;
  const speed = new DownloadSpeed();
  return {
    show(progress) {
      const at = now();
      const rate = speed.add(at, progress);
      if (stage === progress.status && at - last < LINE_MS) return;
      stage = progress.status;
      last = at;
      const percent = progress.total ? ` (${Math.floor((100 * progress.bytes) / progress.total)} %)` : '';
      say(
        `${STAGE_LABELS[progress.status]} ${progress.model}: ${describeProgress(progress, rate) || 'started'}${percent}`,
      );
    },
    end: () => undefined,
  };
}

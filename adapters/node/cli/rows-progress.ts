import { SingleBar } from 'cli-progress';
import type { RowCounts } from '../rows/run-rows.ts';
import { isWatched, screen } from './screen.ts';

/** Shows how far a run over rows is: as a bar on a terminal, otherwise as a line every few seconds. */
export interface RowsView {
  show(counts: RowCounts): void;
  end(): void;
}

/** Milliseconds between two lines. */
const LINE_MS = 5_000;

/** Returns a view that shows a bar if standard error is a terminal, otherwise lines; with `quiet`, nothing. */
export function rowsView(quiet: boolean, now: () => number = () => performance.now()): RowsView {
  if (quiet) return { show: () => undefined, end: () => undefined };
  return isWatched() ? barView(now) : rowLines(now, screen.note);
}

function barView(now: () => number): RowsView {
  let bar: SingleBar | null = null;
  const begin = now();
  return {
    show(counts) {
      if (!bar) {
        bar = new SingleBar({
          format: '{bar} {percentage}%  {words}',
          stream: process.stderr,
          barsize: 24,
          hideCursor: true,
          clearOnComplete: false,
        });
        bar.start(counts.total, counts.done, { words: '' });
      }
      bar.update(counts.done, { words: describe(counts, now() - begin) });
    },
    end() {
      bar?.stop();
      bar = null;
    },
  };
}

/** Returns a view that passes plain lines to `say`: at the beginning, and every `LINE_MS`. */
export function rowLines(now: () => number, say: (line: string) => void): RowsView {
  const begin = now();
  let last = Number.NEGATIVE_INFINITY;
  return {
    show(counts) {
      const at = now();
      if (at - last < LINE_MS) return;
      last = at;
      say(describe(counts, at - begin));
    },
    end: () => undefined,
  };
}

/** Describes how far a run is after some milliseconds: `120 of 500 rows, 24.0/s, 16 s left, 2 errors`. */
function describe({ total, done, before, errors }: RowCounts, ms: number): string {
  const rate = ms > 0 ? ((done - before) * 1000) / ms : 0;
  const left = rate > 0 ? `, ${rate.toFixed(1)}/s, ${duration((total - done) / rate)} left` : '';
  const wrong = errors > 0 ? `, ${errors} error${errors === 1 ? '' : 's'}` : '';
  return `${done} of ${total} rows${left}${wrong}`;
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

import { formatBytes } from '../format-bytes.ts';
import type { DownloadProgress } from '../schema/model-operations.ts';

/** Names the stages of a download for people. */
export const STAGE_LABELS: Readonly<Record<DownloadProgress['status'], string>> = {
  downloading: 'Downloading',
  verifying: 'Verifying',
  compiling: 'Compiling',
};

/** Milliseconds over which the speed is measured. */
const WINDOW_MS = 5_000;

/** Measures the speed of a stage over the last few seconds. */
export class DownloadSpeed {
  #stage: DownloadProgress['status'] | null = null;
  #seen: { at: number; bytes: number }[] = [];

  /**
   * Adds a reading; `at` is in milliseconds. Returns the bytes per second, or null if it is too early to tell. A change
   * of stage discards the earlier readings, because each stage counts its bytes from 0.
   */
  add(at: number, { status, bytes }: DownloadProgress): number | null {
    if (status !== this.#stage) this.#seen = [];
    this.#stage = status;
    this.#seen.push({ at, bytes });
    while (this.#seen.length > 2 && at - (this.#seen[1]?.at ?? at) > WINDOW_MS) this.#seen.shift();
    const first = this.#seen[0];
    return first && at - first.at > 200 ? Math.max(0, ((bytes - first.bytes) / (at - first.at)) * 1000) : null;
  }
}

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

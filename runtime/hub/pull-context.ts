import type { Device } from '../../lib/backend.ts';
import type { Dtype } from '../store/model-files.ts';
import type { StorePaths } from '../store/paths.ts';
import type { HubAccess } from './hub-access.ts';
import type { FileSystem } from './partial-file.ts';

/** The outside world that a pull needs, and its settings. */
export interface PullContext {
  hub: HubAccess;
  paths: StorePaths;
  fs: FileSystem;
  settings: TransferSettings;
}

export interface PullOptions {
  device: Device;
  /** A number format other than the best one for the device. */
  dtype?: Dtype;
  /** Branch, tag or commit; default `main`. */
  revision?: string;
  signal: AbortSignal;
  /** Ends the pull while it still reads the list of files, and does nothing later. */
  listingSignal?: AbortSignal;
  onProgress(progress: PullProgress): void;
}

export interface PullProgress {
  stage: 'downloading' | 'verifying';
  /** Of all files together; in `verifying` those checked so far. */
  bytes: number;
  total: number;
  file?: string;
  /** What it waits for, where it waits. */
  step?: string;
}

export interface TransferSettings {
  /** Connections at once, over all files of a model. */
  connections: number;
  /** Bytes asked for in one request. */
  rangeBytes: number;
  /** Silence after which a connection is made anew, in milliseconds. */
  stallMs: number;
  /** Milliseconds for reading the list of a model's files. */
  listingMs: number;
  /** Milliseconds that this reading goes on when nobody waits for the download any more. */
  unfollowedMs: number;
}

export const TRANSFER_SETTINGS: TransferSettings = {
  connections: 4,
  rangeBytes: 32 * 1024 * 1024,
  stallMs: 30_000,
  listingMs: 25_000,
  unfollowedMs: 5_000,
};

import type { Device } from '../../lib/backend.ts';
import type { Dtype } from '../store/model-files.ts';
import type { StorePaths } from '../store/paths.ts';
import type { HubAccess } from './hub-access.ts';
import type { FileSystem } from './partial-file.ts';

/** Holds the effects and settings that a pull needs. */
export interface PullContext {
  hub: HubAccess;
  paths: StorePaths;
  fs: FileSystem;
  settings: TransferSettings;
}

export interface PullOptions {
  device: Device;
  /** Number format. Default: the best for the device. */
  dtype?: Dtype;
  /** Branch, tag or commit. Default: `main`. */
  revision?: string;
  signal: AbortSignal;
  /** Ends the pull while it reads the list of files, and has no effect later. */
  listingSignal?: AbortSignal;
  onProgress(progress: PullProgress): void;
}

export interface PullProgress {
  stage: 'downloading' | 'verifying';
  /** Bytes of all files together; while `verifying` those checked so far. */
  bytes: number;
  total: number;
  file?: string;
  /** Reason for a wait. */
  step?: string;
}

export interface TransferSettings {
  /** Connections at the same time, over all files of a model. */
  connections: number;
  /** Bytes of one request. */
  rangeBytes: number;
  /** Silence after which a connection is closed and opened again, in milliseconds. */
  stallMs: number;
  /** Milliseconds for reading the list of a model's files. */
  listingMs: number;
  /** Milliseconds that reading the list continues after the last caller has left. */
  unfollowedMs: number;
}

export const TRANSFER_SETTINGS: TransferSettings = {
  connections: 4,
  rangeBytes: 32 * 1024 * 1024,
  stallMs: 30_000,
  listingMs: 25_000,
  unfollowedMs: 5_000,
};

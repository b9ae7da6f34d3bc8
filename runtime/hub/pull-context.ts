import type { Device } from '../../lib/backend.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Dtype } from '../store/dtypes.ts';
import type { GgufTexts } from '../store/import-gguf.ts';
import type { StorePaths } from '../store/paths.ts';
import type { FileSystem } from './partial-file.ts';

/** Provides what requests to a hub depend on: network, clock, random numbers and settings. */
export interface HubAccess {
  fetch: typeof fetch;
  /** A `fetch` that connects to public addresses only (`fetchPublic`), for redirects that leave the hub. */
  fetchPublic: typeof fetch;
  /** Resolves the IP addresses of a host, to tell whether the hub itself is on a private network. */
  addressesOf(hostname: string): Promise<string[]>;
  clock: Clock;
  /** Returns a random number from 0 up to 1, for the jitter of waiting times. */
  random(): number;
  /** Base URL of the hub, without a trailing slash. */
  endpoint: string;
  token: string | null;
  offline: boolean;
}

/** Provides what a download depends on: the hub, the store's paths, file operations and settings. */
export interface PullContext {
  hub: HubAccess;
  paths: StorePaths;
  fs: FileSystem;
  settings: TransferSettings;
  /** Makes a model's configuration and tokenizer from its GGUF file, in a child process (`Compiles.describe`). */
  describe(file: string): Promise<GgufTexts>;
}

export interface PullOptions {
  device: Device;
  /** Number format of the weights. Default: the best for the device. */
  dtype?: Dtype;
  /** Branch, tag or commit to download. Default: `main`. */
  revision?: string;
  /** True for the base model of an adapter: only its checkpoint will do. */
  base?: boolean;
  signal: AbortSignal;
  /** Ends the download if it aborts while the list of files is being fetched. Has no effect later. */
  listingSignal?: AbortSignal;
  onProgress(progress: PullProgress): void;
}

export interface PullProgress {
  stage: 'downloading' | 'verifying';
  /** Bytes of all files together that are on the disk; while `verifying`, those verified so far. */
  bytes: number;
  total: number;
  file?: string;
  /** Reason why the download waits; absent while it does not. */
  step?: string;
}

export interface TransferSettings {
  /** Maximum connections at the same time, for all files of a model together. */
  connections: number;
  /** Number of bytes to request at a time. */
  rangeBytes: number;
  /** Milliseconds without data after which a connection is closed and opened again. */
  stallMs: number;
  /** Timeout for fetching the list of a model's files, in milliseconds. */
  listingMs: number;
  /** Milliseconds for which fetching the list of files continues after the last caller has left. */
  unfollowedMs: number;
}

export const TRANSFER_SETTINGS: TransferSettings = {
  connections: 4,
  rangeBytes: 32 * 1024 * 1024,
  stallMs: 30_000,
  listingMs: 25_000,
  unfollowedMs: 5_000,
};

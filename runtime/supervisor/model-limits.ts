import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Device } from '../../lib/backend.ts';
import { MANIFEST_FILE, Manifest } from '../compile/manifest.ts';
import { availableMemory } from '../device/available-memory.ts';
import { cellBytes } from '../engine/sequence.ts';
import type { CompileSpec } from '../protocol/messages.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';

/** Holds limits that no valid model exceeds; a process that exceeds them is killed. */
export interface ModelLimits {
  /** Milliseconds without progress while native code opens the model, or a compile works on a weight. */
  openMs: number;
  /** Resident bytes that the process may use. */
  memoryBytes: number;
  device: Device;
}

/** Milliseconds for an empty model, and bytes per millisecond: for a slow disk and a busy machine. */
const OPEN = { baseMs: 30_000, bytesPerMs: 20_000 };
/** Milliseconds for other devices, whose drivers compile the whole graph when they open it. */
const OTHER_DEVICE_MS = 600_000;

/** Bytes without the model: Node, onnxruntime and a large tokenizer take up to 1 GiB. */
const BASE_BYTES = 1.5 * 2 ** 30;
/** Copies of the weights: as published, in 32 bits, and in the layout of the kernels. */
const COPIES_OF_WEIGHTS = 4;
/** Growth of the weights: a compile compares its forms with one in 32 bits, and published weights may have 4. */
const WIDENED = 8;
/** Features of media that are kept, and the prepared media that wait to be encoded. */
const MEDIA_BYTES = 2 ** 30;
/** Largest share of the available memory. */
const SHARE = 0.9;

/** Returns the limits for loading the compiled model in `dir`. */
export async function loadLimits(dir: string): Promise<ModelLimits> {
  const bytes = await folderBytes(dir);
  const read = await readBoundedJson(join(dir, MANIFEST_FILE), CONFIG_BOUNDS).catch(() => undefined);
  const manifest = v.safeParse(Manifest, read);
  if (!manifest.success) return { openMs: openMs(bytes), memoryBytes: availableMemory() * SHARE, device: 'CPU' };
  const { kv, media, device, maxPromptLen, contextLength } = manifest.output;
  // Cached prefixes, those in use, and one answer that grows to the whole context, with the copy that growing takes.
  const cells = 8 * maxPromptLen + 2.5 * contextLength;
  return {
    device,
    openMs: device === 'CPU' ? openMs(bytes) : OTHER_DEVICE_MS,
    memoryBytes: memoryFor(COPIES_OF_WEIGHTS * bytes + cells * cellBytes({ layers: kv }) + (media ? MEDIA_BYTES : 0)),
  };
}

/** Returns the limits for compiling a published model. */
export async function compileLimits({ source, device }: Pick<CompileSpec, 'source' | 'device'>): Promise<ModelLimits> {
  const bytes = WIDENED * (await folderBytes(source));
  return {
    device,
    openMs: device === 'CPU' ? openMs(bytes) : OTHER_DEVICE_MS,
    memoryBytes: memoryFor(COPIES_OF_WEIGHTS * bytes),
  };
}

function openMs(bytes: number): number {
  return OPEN.baseMs + bytes / OPEN.bytesPerMs;
}

function memoryFor(bytes: number): number {
  return Math.min(availableMemory() * SHARE, BASE_BYTES + bytes);
}

/** Counts the bytes of the files in a folder and follows links; 0 when there is no folder. */
async function folderBytes(dir: string): Promise<number> {
  const names = await readdir(dir, { recursive: true }).catch(() => []);
  const sizes = names.map(async (name) => {
    const found = await stat(join(dir, name)).catch(() => null);
    return found?.isFile() ? found.size : 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Device } from '../../../lib/backend.ts';
import { EncoderManifest, MANIFEST_FILE, Manifest } from '../../compile/manifest.ts';
import { availableMemory } from '../../device/hardware.ts';
import { cellBytes } from '../../engine/cache/kv-shape.ts';
import type { CompileSpec } from '../../protocol/messages.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../../store/bounded-file.ts';

/**
 * Limits of a process that loads or compiles a model, which no valid model exceeds. A process that exceeds one is
 * killed.
 */
export interface ModelLimits {
  /**
   * Maximum milliseconds without progress (`SilenceClock`) while native code opens the model, or a compile works on one
   * weight.
   */
  openMs: number;
  /** Maximum resident bytes of the process. */
  memoryBytes: number;
  /** Device that the model is compiled for. */
  device: Device;
}

/**
 * Time to open a model, generous enough for a slow disk and a busy machine: a base in milliseconds, and the bytes of
 * the model that are read per millisecond.
 */
const OPEN = { baseMs: 30_000, bytesPerMs: 20_000 };
/** Milliseconds to open a model on a GPU or NPU, whose driver compiles the whole graph first. */
const OTHER_DEVICE_MS = 600_000;

/** Bytes of memory without the model: Node, onnxruntime and a large tokenizer need up to 1 GiB. */
const BASE_BYTES = 1.5 * 2 ** 30;
/**
 * Bound on the memory for weights, as a multiple of their bytes in the files: the file, the converted weights and the
 * layout of the kernels may be in memory together.
 */
const COPIES_OF_WEIGHTS = 4;
/**
 * Factor by which weights may grow in a compile: published weights may have 4 bits, and the compile also makes one
 * with 32 bits to compare others with.
 */
const WIDENED = 8;
/** Memory of a GPU's or NPU's driver and libraries in the process: CUDA's are 1.2 GB, mapped but for a part. */
const DRIVER_BYTES = 4 * 2 ** 30;
/** Memory for cached features of media, and for decoded media that wait for the encoder, in bytes. */
const MEDIA_BYTES = 2 ** 30;
/**
 * Memory for the states and attention of one run of an encoder model, in bytes. DeBERTa with 1,064 tokens needs about 1
 * GB; the longest rows of other encoders, twice as much.
 */
const ENCODER_BYTES = 6 * 2 ** 30;
/** Largest fraction of the machine's available memory that a process may use. */
const SHARE = 0.9;

/**
 * Returns the limits for loading the compiled model in the folder `dir`. If its manifest is missing or invalid, they
 * are those of a model on the CPU, with the largest `memoryBytes`.
 */
export async function loadLimits(dir: string): Promise<ModelLimits> {
  const bytes = await folderBytes(dir);
  const read = await readBoundedJson(join(dir, MANIFEST_FILE), CONFIG_BOUNDS).catch(() => undefined);
  if (v.is(EncoderManifest, read)) {
    return { openMs: openMs(bytes), memoryBytes: memoryFor(COPIES_OF_WEIGHTS * bytes + ENCODER_BYTES), device: 'CPU' };
  }
  const manifest = v.safeParse(Manifest, read);
  if (!manifest.success) return { openMs: openMs(bytes), memoryBytes: availableMemory() * SHARE, device: 'CPU' };
  const { kv, media, device, maxPromptLen, contextLength } = manifest.output;
  // KV cells of cached prefixes and of those in use, and of one answer that grows to the whole context, including the
  // copy that growing needs.
  const cells = 8 * maxPromptLen + 2.5 * contextLength;
  return {
    device,
    openMs: device === 'CPU' ? openMs(bytes) : OTHER_DEVICE_MS,
    memoryBytes: memoryFor(
      COPIES_OF_WEIGHTS * bytes +
        cells * cellBytes({ layers: kv }) +
        (media ? MEDIA_BYTES : 0) +
        (device === 'CPU' ? 0 : DRIVER_BYTES),
    ),
  };
}

/**
 * Memory that an engine process needs besides weights and KV cells: Node, onnxruntime and a tokenizer. The process of
 * the starter model, whose weights have 17 MB, had 254 MB.
 */
const PROCESS_BYTES = 250 * 2 ** 20;

/**
 * Returns the bytes of memory that the compiled model in the folder `dir` is expected to need: the program, its files,
 * and the KV cells of one prompt of the longest length.
 */
export async function expectedBytes(dir: string): Promise<number> {
  const bytes = PROCESS_BYTES + (await folderBytes(dir));
  const read = v.safeParse(Manifest, await readBoundedJson(join(dir, MANIFEST_FILE), CONFIG_BOUNDS).catch(() => null));
  return read.success ? bytes + read.output.maxPromptLen * cellBytes({ layers: read.output.kv }) : bytes;
}

/** Returns the limits for compiling the published model in the folder `source` for `device`. */
export async function compileLimits({ source, device }: Pick<CompileSpec, 'source' | 'device'>): Promise<ModelLimits> {
  const bytes = WIDENED * (await folderBytes(source));
  return {
    device,
    openMs: device === 'CPU' ? openMs(bytes) : OTHER_DEVICE_MS,
    memoryBytes: memoryFor(COPIES_OF_WEIGHTS * bytes + (device === 'CPU' ? 0 : DRIVER_BYTES)),
  };
}

function openMs(bytes: number): number {
  return OPEN.baseMs + bytes / OPEN.bytesPerMs;
}

function memoryFor(bytes: number): number {
  return Math.min(availableMemory() * SHARE, BASE_BYTES + bytes);
}

/** Returns the total size in bytes of the files in a folder, following links; 0 if the folder does not exist. */
async function folderBytes(dir: string): Promise<number> {
  const names = await readdir(dir, { recursive: true }).catch(() => []);
  const sizes = names.map(async (name) => {
    const found = await stat(join(dir, name)).catch(() => null);
    return found?.isFile() ? found.size : 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

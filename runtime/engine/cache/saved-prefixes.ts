import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { at } from '../../../lib/at.ts';
import { FIRST_MEDIA_ID } from '../forward/media-feeds.ts';
import type { KvLayerBuffers, KvShape } from './kv-shape.ts';
import { prefixBytes, type Sequence } from './sequence.ts';
import { snapshotBytes } from './snapshots.ts';

export interface SavedPrefixOptions {
  /** Folder of this model alone: nothing else may be in it. */
  folder: string;
  /** Key of 32 bytes that the files are encrypted with. */
  key: Uint8Array;
  /** Maximum bytes of all files. */
  maxBytes: number;
  /** Receives why a prefix could not be written, the first time only. */
  onFailed?(cause: unknown): void;
}

/** Describes a file: the scope and tokens of its prefix, and the cells with recurrent states. */
interface Saved {
  name: string;
  bytes: number;
  scope: string;
  tokens: Int32Array;
  /** `Sequence.exactLength` */
  exact: number;
  snapshots: readonly number[];
}

/** Names the first `count` cells of a sequence, as long as it has discarded none since. */
interface Waiting {
  sequence: Sequence;
  count: number;
  discards: number;
}

/** Fewest tokens of a prefix that is saved, and fewest that a saved one must add to those in memory. */
const MIN_SAVED = 128;
const MIN_GAIN = 64;
/** Maximum number of files, and of prefixes that wait to be written. */
const MOST_FILES = 4_096;
const MOST_WAITING = 8;
const SALT_BYTES = 16;
const TAG_BYTES = 16;
const SUFFIX = '.prefix';

/**
 * Keeps prefixes of the KV cache in files, so that they outlive the process: those of interactive jobs, which are
 * written in the background, the least recently used of which are deleted if they take too many bytes. The files are
 * encrypted and authenticated; one that was cut, changed or written for another model is deleted. Each is a salt and
 * then sealed parts: the description, the keys and values of each layer, and the states of each snapshot.
 */
export class SavedPrefixes {
  readonly #options: SavedPrefixOptions;
  readonly #shape: KvShape;
  /** The files, the least recently used first. */
  readonly #saved: Saved[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #loading = new Map<Saved, Promise<boolean>>();
  #writing: Promise<void> | null = null;
  #failures = 0;

  constructor(options: SavedPrefixOptions, shape: KvShape) {
    this.#options = options;
    this.#shape = shape;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    const files = readdirSync(options.folder).map((name) => {
      const { mtimeMs, size } = statSync(this.#path(name));
      return { name, mtimeMs, size };
    });
    files.sort((a, b) => a.mtimeMs - b.mtimeMs);
    for (const { name, size } of files) {
      const saved = this.#saved.length < MOST_FILES ? this.#describe(name, size) : null;
      if (saved) this.#saved.push(saved);
      else rmSync(this.#path(name), { force: true });
    }
  }

  #path(name: string): string {
    return join(this.#options.folder, name);
  }

  /** Reads what a file is about; null if it is none of this model, or damaged. */
  #describe(name: string, bytes: number): Saved | null {
    if (!name.endsWith(SUFFIX)) return null;
    const handle = openSync(this.#path(name), 'r');
    try {
      const next = (length: number) => {
        const buffer = Buffer.alloc(length);
        if (readSync(handle, buffer) !== length) throw new Error('the file is too short');
        return buffer;
      };
      const seal = new Seal(this.#options.key, next(SALT_BYTES));
      const length = next(4).readUInt32LE();
      if (length > bytes) return null;
      const text = seal.open(next(length)).toString('utf8');
      const { scope, tokens, exact = 0, snapshots } = JSON.parse(text);
      if (bytes !== this.#bytes(length, tokens.length, snapshots.length)) return null;
      return { name, bytes, scope, tokens: Int32Array.from(tokens), exact, snapshots };
    } catch {
      return null;
    } finally {
      closeSync(handle);
    }
  }

  /** Returns the bytes of a file whose sealed description has `length` bytes. */
  #bytes(length: number, count: number, snapshots: number): number {
    const { layers, half, states = [] } = this.#shape;
    const parts = layers.map(({ heads, headSize }) => 2 * heads * headSize * count * (half ? 2 : 4));
    for (let i = 0; i < snapshots; i++) parts.push(snapshotBytes(states));
    return SALT_BYTES + 4 + length + parts.reduce((sum, part) => sum + part + TAG_BYTES, 0);
  }

  /** Returns how many first tokens of a prefix a job could continue after. */
  #usable({ scope, tokens, snapshots }: Saved, prefix: readonly number[], wanted: string): number {
    if (scope !== wanted) return 0;
    const end = Math.min(tokens.length, prefix.length);
    let count = 0;
    while (count < end && tokens[count] === prefix[count]) count++;
    if (!this.#shape.states?.length) return count;
    return Math.max(0, ...snapshots.filter((cell) => cell < count).map((cell) => cell + 1));
  }

  /**
   * Reads the saved prefix of a scope that is the longest beginning of `prefix`, if it has more tokens than the
   * `cached` ones in memory; with `exact`, only exact ones count. Returns it as a sequence that `blank` has made; null
   * if there is none, or while it is being read for another job, after which it is in memory.
   */
  async read(
    prefix: readonly number[],
    scope: string,
    { cached, exact, blank }: { cached: number; exact: boolean; blank(cells: number): Sequence },
  ): Promise<Sequence | null> {
    let best: { saved: Saved; usable: number } | undefined;
    for (const saved of this.#saved) {
      const found = this.#usable(saved, prefix, scope);
      const usable = exact ? Math.min(saved.exact, found) : found;
      if (usable >= cached + MIN_GAIN && usable > (best?.usable ?? 0)) best = { saved, usable };
    }
    if (!best) return null;
    const { saved } = best;
    const underWay = this.#loading.get(saved);
    if (underWay) {
      await underWay;
      return null;
    }
    const sequence = blank(saved.tokens.length);
    const loading = this.#fill(saved, sequence);
    this.#loading.set(saved, loading);
    const filled = await loading;
    this.#loading.delete(saved);
    return filled ? sequence : null;
  }

  /** Fills an empty sequence from a file. Returns false, and deletes the file, if it is damaged. */
  async #fill(saved: Saved, sequence: Sequence): Promise<boolean> {
    let handle: FileHandle | undefined;
    try {
      handle = await open(this.#path(saved.name));
      const file = handle;
      const next = async (length: number) => {
        const buffer = Buffer.allocUnsafe(length);
        const { bytesRead } = await file.read(buffer, 0, length);
        if (bytesRead !== length) throw new Error('the file is too short');
        return buffer;
      };
      const seal = new Seal(this.#options.key, await next(SALT_BYTES));
      seal.open(await next((await next(4)).readUInt32LE()));
      const count = saved.tokens.length;
      for (const token of saved.tokens) sequence.append(token, sequence.length - 1);
      for (const [index, { heads, headSize }] of this.#shape.layers.entries()) {
        const size = 2 * heads * headSize * count * (this.#shape.half ? 2 : 4);
        unpack(seal.open(await next(size + TAG_BYTES)), at(sequence.layers, index), sequence.capacity, {
          heads,
          headSize,
          count,
        });
      }
      const { states = [] } = this.#shape;
      for (const cell of saved.snapshots) {
        const floats = floatsOf(seal.open(await next(snapshotBytes(states) + TAG_BYTES)));
        const starts = states.map((_, i) => states.slice(0, i).reduce((sum, size) => sum + size, 0));
        const tensors = states.map((size, i) => floats.subarray(at(starts, i), at(starts, i) + size));
        sequence.snapshots.set(cell, { states: { rows: 1, tensors }, row: 0 });
      }
      sequence.scope = saved.scope;
      sequence.exactLength = saved.exact;
      this.#saved.splice(this.#saved.indexOf(saved), 1);
      this.#saved.push(saved);
      const now = new Date();
      await utimes(this.#path(saved.name), now, now);
      return true;
    } catch {
      await this.#delete(saved);
      return false;
    } finally {
      await handle?.close();
    }
  }

  async #delete(saved: Saved): Promise<void> {
    const index = this.#saved.indexOf(saved);
    if (index >= 0) this.#saved.splice(index, 1);
    await rm(this.#path(saved.name), { force: true }).catch(() => undefined);
  }

  /** Saves the first `length` cells of a sequence's trunk, if they are worth it. Does not wait for the disk. */
  save(sequence: Sequence, length: number): void {
    const media = sequence.tokens.subarray(0, length).findIndex((token) => token >= FIRST_MEDIA_ID);
    // Ids of media mean nothing to another process.
    const text = media < 0 ? Math.min(length, sequence.trunkLength) : media;
    const count = sequence.snapshots.resumableLength(text);
    if (count < MIN_SAVED || this.#isSaved(sequence, count)) return;
    if (prefixBytes(this.#shape, count) > this.#options.maxBytes / 2) return;
    this.#waiting.push({ sequence, count, discards: sequence.discards });
    if (this.#waiting.length > MOST_WAITING) this.#waiting.shift();
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null;
    });
  }

  #isSaved({ tokens, scope }: Sequence, count: number): boolean {
    const prefix = [...tokens.subarray(0, count)];
    return this.#saved.some((saved) => this.#usable(saved, prefix, scope) > count - MIN_GAIN);
  }

  /** Number of prefixes that could not be written. */
  get failures(): number {
    return this.#failures;
  }

  /** Resolves when everything that waits is written. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      if (isOverwritten(next) || this.#isSaved(next.sequence, next.count)) continue;
      // A full disk costs the next process time, and nothing else.
      await this.#write(next).catch((cause) => {
        if (isOverwritten(next)) return;
        this.#failures++;
        if (this.#failures === 1) this.#options.onFailed?.(cause);
      });
    }
  }

  /** Writes a file, unless the cells are overwritten meanwhile. It gets its name once it is whole. */
  async #write(waiting: Waiting): Promise<void> {
    const { key, maxBytes } = this.#options;
    const { sequence, count } = waiting;
    const { scope } = sequence;
    const tokens = Int32Array.from(sequence.tokens.subarray(0, count));
    const exact = Math.min(sequence.exactLength, count);
    const snapshots = [...sequence.snapshots.cells].filter((cell) => cell < count);
    const salt = randomBytes(SALT_BYTES);
    const seal = new Seal(key, salt);
    const description = seal.close(Buffer.from(JSON.stringify({ scope, tokens: [...tokens], exact, snapshots })));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(description.length);
    const bytes = this.#bytes(description.length, count, snapshots.length);
    const total = () => this.#saved.reduce((sum, saved) => sum + saved.bytes, bytes);
    for (
      let [oldest] = this.#saved;
      oldest && (total() > maxBytes || this.#saved.length >= MOST_FILES);
      [oldest] = this.#saved
    )
      await this.#delete(oldest);
    const name = `${randomBytes(16).toString('hex')}${SUFFIX}`;
    const partial = this.#path(`${name}.partial`);
    try {
      const handle = await open(partial, 'wx', 0o600);
      try {
        await handle.write(Buffer.concat([salt, length, description]));
        for (const part of this.#parts(sequence, count, snapshots)) {
          if (isOverwritten(waiting)) throw new Error('the cells were overwritten');
          await handle.write(seal.close(part()));
        }
      } finally {
        await handle.close();
      }
      await rename(partial, this.#path(name));
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
    const saved = { name, bytes, scope, tokens, exact, snapshots };
    const shorter = this.#saved.filter((other) => this.#usable(other, [...tokens], scope) === other.tokens.length);
    this.#saved.push(saved);
    for (const other of shorter) await this.#delete(other);
  }

  /** Yields what copies each part of a sequence, so that the cells are read after it is known that they are intact. */
  *#parts(sequence: Sequence, count: number, snapshots: readonly number[]): Generator<() => Buffer> {
    for (const [index, { heads, headSize }] of this.#shape.layers.entries()) {
      yield () => packed(at(sequence.layers, index), sequence.capacity, { heads, headSize, count });
    }
    for (const cell of snapshots) {
      const snapshot = sequence.snapshots.at(cell);
      yield () => {
        if (!snapshot) throw new Error('the states were discarded');
        const { states, row } = snapshot;
        const sizes = this.#shape.states ?? [];
        const rows = sizes.map((size, i) => at(states.tensors, i).subarray(row * size, (row + 1) * size));
        return Buffer.concat(rows.map(bytesOf));
      };
    }
  }
}

function isOverwritten({ sequence, discards }: Waiting): boolean {
  return sequence.discards !== discards;
}

interface Cells {
  heads: number;
  headSize: number;
  count: number;
}

/** Copies the keys and values of the first cells of a layer, without the free cells behind those of each head. */
function packed({ key, value }: KvLayerBuffers, capacity: number, { heads, headSize, count }: Cells): Buffer {
  const parts = [key, value].flatMap((buffer) =>
    Array.from({ length: heads }, (_, head) => {
      const start = head * capacity * headSize;
      return bytesOf(buffer.subarray(start, start + count * headSize));
    }),
  );
  return Buffer.concat(parts);
}

function unpack(
  from: Buffer,
  { key, value }: KvLayerBuffers,
  capacity: number,
  { heads, headSize, count }: Cells,
): void {
  let end = 0;
  for (const buffer of [key, value]) {
    for (let head = 0; head < heads; head++) {
      const start = head * capacity * headSize;
      const cells = bytesOf(buffer.subarray(start, start + count * headSize));
      end += from.copy(cells, 0, end, end + cells.length);
    }
  }
}

/** Returns the bytes of an array in place, as the processor orders them: files are for this machine. */
function bytesOf({ buffer, byteOffset, byteLength }: Float32Array | Uint16Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function floatsOf(bytes: Buffer): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}

/**
 * Encrypts or decrypts the parts of a file, in order: AES-256-GCM with a key of the file's own, and the number of the
 * part as the nonce, so parts cannot be exchanged.
 */
class Seal {
  readonly #key: Buffer;
  #part = 0;

  constructor(key: Uint8Array, salt: Uint8Array) {
    this.#key = Buffer.from(hkdfSync('sha256', key, salt, 'assay saved prefix 1', 32));
  }

  #nonce(): Buffer {
    const nonce = Buffer.alloc(12);
    nonce.writeUInt32BE(this.#part++, 8);
    return nonce;
  }

  close(part: Buffer): Buffer {
    const cipher = createCipheriv('aes-256-gcm', this.#key, this.#nonce());
    const sealed = cipher.update(part);
    return Buffer.concat([sealed, cipher.final(), cipher.getAuthTag()]);
  }

  /** Throws if the part was changed. */
  open(sealed: Buffer): Buffer {
    const decipher = createDecipheriv('aes-256-gcm', this.#key, this.#nonce());
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    const part = decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES));
    return Buffer.concat([part, decipher.final()]);
  }
}

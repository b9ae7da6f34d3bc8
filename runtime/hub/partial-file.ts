import type * as nodeFs from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/** Lists the file operations of a download. Tests replace them to make them fail. */
export type FileSystem = Pick<typeof nodeFs, 'open' | 'rename' | 'readFile' | 'rm' | 'stat' | 'statfs'>;

/**
 * Describes a part of a file: its bytes from `start` up to, but not including, `end`. Those before `next` are on the
 * disk.
 */
export interface Range {
  readonly index: number;
  readonly start: number;
  readonly end: number;
  next: number;
  /** Ranges that this one consists of, if it is the whole file (`whole`). */
  readonly parts?: readonly Range[];
}

/**
 * Number of journal lines for each complete range. A crash with up to eight open ranges loses at most the bytes of one
 * range.
 */
const JOURNAL_LINES = 8;

/**
 * Stores a file that is received in ranges, out of order, and keeps the progress through a crash. The data file holds
 * each byte at its final position. A journal beside it records which bytes are present: a line for the layout, then
 * lines `<range> <next>`, of which the last for each range counts. A line is written only after the bytes that it
 * records.
 */
export class PartialFile {
  readonly size: number;
  readonly ranges: readonly Range[];
  readonly #data: FileHandle;
  readonly #journal: FileHandle;
  readonly #step: number;
  readonly #journalled = new Map<number, number>();

  private constructor(
    size: number,
    rangeBytes: number,
    ranges: readonly Range[],
    data: FileHandle,
    journal: FileHandle,
  ) {
    this.size = size;
    this.#step = rangeBytes / JOURNAL_LINES;
    this.ranges = ranges;
    this.#data = data;
    this.#journal = journal;
  }

  /**
   * Opens the data file and the journal of an earlier attempt, or starts new ones if there are none or their layout
   * (size and `rangeBytes`) differs. Throws the file system's error if a file cannot be opened or written.
   */
  static async open(
    fs: FileSystem,
    names: { data: string; journal: string },
    size: number,
    rangeBytes: number,
  ): Promise<PartialFile> {
    const layout = `assay-partial 1 ${size} ${rangeBytes}`;
    const ranges: Range[] = [];
    for (let start = 0; start < size; start += rangeBytes) {
      ranges.push({ index: ranges.length, start, end: Math.min(start + rangeBytes, size), next: start });
    }
    const lines = (await fs.readFile(names.journal, 'utf8').catch(() => '')).split('\n');
    const there = (await fs.stat(names.data).catch(() => null))?.size ?? 0;
    const resumes = lines[0] === layout;
    if (resumes) readJournal(lines.slice(1, -1), ranges, there);
    // The mode `r+` keeps the content but does not create the file.
    const data = await fs.open(names.data, resumes && there > 0 ? 'r+' : 'w+');
    const journal = await fs.open(names.journal, resumes ? 'a' : 'w').catch(async (error: unknown) => {
      await data.close();
      throw error;
    });
    const partial = new PartialFile(size, rangeBytes, ranges, data, journal);
    try {
      // The last line of the earlier attempt may be incomplete, so a line break ends it first.
      await journal.appendFile(resumes ? '\n' : `${layout}\n`);
      for (const range of ranges) partial.#journalled.set(range.index, range.next);
    } catch (error) {
      await partial.close();
      throw error;
    }
    return partial;
  }

  /** Number of bytes of the file that are on the disk. */
  get written(): number {
    return this.ranges.reduce((sum, range) => sum + range.next - range.start, 0);
  }

  /**
   * Returns a range for the whole file. Its `next` is the first byte that is not on the disk; later bytes that are
   * there are not counted again. While it is written, no other range may be.
   */
  whole(): Range {
    const next = this.ranges.find((range) => range.next < range.end)?.next ?? this.size;
    return { index: -1, start: 0, end: this.size, next, parts: this.ranges };
  }

  /**
   * Writes `chunk` at `range.next`, and advances `range.next`. Ignores bytes beyond the end of the range. Returns the
   * number of bytes that were not on the disk yet.
   */
  async write(range: Range, chunk: Uint8Array): Promise<number> {
    const bytes = chunk.subarray(0, range.end - range.next);
    if (!range.parts) {
      await this.#writePart(range, bytes);
      return bytes.length;
    }
    let written = 0;
    for (const part of range.parts) {
      const skip = part.next - range.next;
      if (part.next < part.end && skip < bytes.length) written += await this.write(part, bytes.subarray(skip));
    }
    range.next += bytes.length;
    return written;
  }

  async #writePart(range: Range, bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0) {
      const { bytesWritten } = await this.#data.write(rest, 0, rest.length, range.next);
      range.next += bytesWritten;
      rest = rest.subarray(bytesWritten);
    }
    if (range.next === range.end || range.next - (this.#journalled.get(range.index) ?? 0) >= this.#step) {
      await this.#note(range);
    }
  }

  /** Records the progress of each range in the journal, and closes the data file and the journal. */
  async close(): Promise<void> {
    try {
      for (const range of this.ranges) await this.#note(range);
    } catch {
      // If the disk is full, the journal records fewer bytes than are present, which is safe.
    } finally {
      await this.#journal.close().finally(() => this.#data.close());
    }
  }

  async #note(range: Range): Promise<void> {
    if (this.#journalled.get(range.index) === range.next) return;
    this.#journalled.set(range.index, range.next);
    await this.#journal.appendFile(`${range.index} ${range.next}\n`);
  }
}

function readJournal(lines: readonly string[], ranges: readonly Range[], bytesThere: number): void {
  for (const line of lines) {
    const [index, next] = line.split(' ').map(Number);
    const range = ranges[index ?? -1];
    if (!range || next === undefined || !(next >= range.start && next <= range.end && next <= bytesThere)) continue;
    range.next = next;
  }
}

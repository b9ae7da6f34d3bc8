import { createReadStream } from 'node:fs';
import { extname } from 'node:path';
import { parse } from 'csv-parse';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, type SchemaElement } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { messageOf } from '../../../lib/errors.ts';
import { splitMembers } from '../../../lib/json/members.ts';
import { whyNotRead } from '../cli/read-input.ts';
import { UsageError } from '../usage-error.ts';

/** Formats of files of rows, by the ends of their names. */
const FORMATS = {
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.csv': 'csv',
  '.tsv': 'tsv',
  '.parquet': 'parquet',
} as const;
export type RowFormat = (typeof FORMATS)[keyof typeof FORMATS];

/** Represents a row of a file: its columns with their JSON texts in order, or the reason why it is not a row. */
export type DataRow = { columns: ReadonlyMap<string, string>; values?: ParquetValues } | { problem: string };
/** Values of a row of a Parquet file, as its library reads them. */
export type ParquetValues = Readonly<Record<string, unknown>>;

/** Maximum size of one row in bytes: that of the body of a request. */
const MOST_ROW_BYTES = 20 * 1024 * 1024;

/** Returns the format of a file of rows. Throws `UsageError` for a name without a known end. */
export function formatOf(file: string, flag: string): RowFormat {
  const end = extname(file).toLowerCase();
  if (Object.hasOwn(FORMATS, end)) return FORMATS[end as keyof typeof FORMATS];
  throw new UsageError(`${flag} ${file}: the name must end with ${Object.keys(FORMATS).join(', ')}.`);
}

/**
 * Reads the rows of a file one after another. A line that is not a row is reported as one (`problem`), so that no row
 * is lost. Throws `UsageError` if the file cannot be read as this format at all.
 */
export async function* readRows(file: string): AsyncGenerator<DataRow> {
  const format = formatOf(file, '--rows');
  try {
    if (format === 'jsonl') yield* jsonRows(file);
    else if (format === 'parquet') yield* parquetRows(file);
    else yield* csvRows(file, format === 'csv' ? ',' : '\t');
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    const why = (cause as NodeJS.ErrnoException).syscall ? whyNotRead(cause) : `cannot be read: ${messageOf(cause)}`;
    throw new UsageError(`${file} ${why.replace(/\.$/, '')}.`, { cause });
  }
}

async function* jsonRows(file: string): AsyncGenerator<DataRow> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let number = 0;
  for await (const line of lines(file)) {
    number++;
    if (line === null) {
      yield { problem: `Line ${number} has more than ${MOST_ROW_BYTES} bytes.` };
      continue;
    }
    let text: string;
    try {
      text = decoder.decode(line).trim();
    } catch {
      yield { problem: `Line ${number} is not UTF-8 text.` };
      continue;
    }
    if (text === '') continue;
    try {
      yield { columns: splitMembers(text) };
    } catch {
      yield { problem: `Line ${number} is not a JSON object.` };
    }
  }
}

/** Splits a file at line feeds; null stands for a line of more than `MOST_ROW_BYTES`. */
export async function* lines(file: string): AsyncGenerator<Buffer | null> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const line = () => {
    const whole = bytes > MOST_ROW_BYTES ? null : Buffer.concat(parts);
    parts = [];
    bytes = 0;
    return whole;
  };
  const add = (part: Buffer) => {
    bytes += part.length;
    if (bytes <= MOST_ROW_BYTES) parts.push(part);
  };
  for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      add(chunk.subarray(start, end));
      yield line();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (bytes > 0) yield line();
}

async function* csvRows(file: string, delimiter: string): AsyncGenerator<DataRow> {
  const records = createReadStream(file).pipe(
    parse({
      bom: true,
      delimiter,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      max_record_size: MOST_ROW_BYTES,
    }),
  );
  let names: string[] | null = null;
  for await (const { record, info } of records as AsyncIterable<{ record: string[]; info: { lines: number } }>) {
    if (names === null) {
      names = record;
      const odd = names.find((name, i) => name === '' || names?.indexOf(name) !== i);
      if (odd !== undefined) {
        throw new UsageError(`${file}: ${odd === '' ? 'a column has no name' : `two columns are named ${odd}`}.`);
      }
    } else if (record.length === names.length) {
      yield { columns: new Map(names.map((name, i) => [name, JSON.stringify(record[i])])) };
    } else {
      yield {
        problem: `The row at line ${info.lines} has ${record.length} fields; there are ${names.length} columns.`,
      };
    }
  }
}

/** Represents a time of a Parquet file with all its digits, of which a `Date` keeps milliseconds only. */
class Time {
  readonly #units: bigint;
  readonly #perMs: bigint;

  constructor(units: bigint, perMs: bigint) {
    this.#units = units;
    this.#perMs = perMs;
  }

  valueOf(): bigint {
    return this.#units;
  }

  toJSON(): string {
    const ms = this.#units / this.#perMs - (this.#units % this.#perMs < 0n ? 1n : 0n);
    const rest = this.#units - ms * this.#perMs;
    const iso = new Date(Number(ms)).toISOString();
    const digits = this.#perMs.toString().length - 1;
    return rest === 0n ? iso : iso.replace('Z', `${rest.toString().padStart(digits, '0')}Z`);
  }
}

/** Returns the elements of the schema of a Parquet file that are columns of plain values, by their names. */
export async function parquetColumns(file: string): Promise<ReadonlyMap<string, SchemaElement>> {
  const { schema } = await parquetMetadataAsync(await asyncBufferFromFile(file));
  const columns = new Map<string, SchemaElement>();
  // The elements are in depth-first order, so those within a nested column are skipped.
  for (let at = 1; at < schema.length; at = after(schema, at)) {
    const element = schema[at];
    if (element && !element.num_children && element.repetition_type !== 'REPEATED') columns.set(element.name, element);
  }
  return columns;
}

/** Returns the index after an element and all elements within it. */
function after(schema: readonly SchemaElement[], at: number): number {
  let next = at + 1;
  for (let child = 0; child < (schema[at]?.num_children ?? 0); child++) next = after(schema, next);
  return next;
}

async function* parquetRows(file: string): AsyncGenerator<DataRow> {
  const buffer = await asyncBufferFromFile(file);
  const metadata = await parquetMetadataAsync(buffer);
  const parsers = {
    timestampFromMilliseconds: (units: bigint) => new Time(units, 1n),
    timestampFromMicroseconds: (units: bigint) => new Time(units, 1_000n),
    timestampFromNanoseconds: (units: bigint) => new Time(units, 1_000_000n),
  };
  let start = 0;
  for (const { num_rows: count } of metadata.row_groups) {
    const end = start + Number(count);
    const group = { rowStart: start, rowEnd: end };
    for (const values of await parquetReadObjects({
      file: buffer,
      metadata,
      compressors,
      parsers,
      utf8: false,
      ...group,
    })) {
      yield { columns: new Map(Object.entries(values).map(([name, value]) => [name, parquetJson(value)])), values };
    }
    start = end;
  }
}

/**
 * Returns a value of a Parquet file as JSON text: whole numbers keep their digits, bytes that are no text become
 * base64.
 */
function parquetJson(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner: unknown) => {
      if (typeof inner === 'bigint') return Number.isSafeInteger(Number(inner)) ? Number(inner) : String(inner);
      if (typeof inner === 'number' && !Number.isFinite(inner)) return String(inner);
      return inner instanceof Uint8Array ? textOfBytes(inner) : inner;
    }) ?? 'null'
  );
}

function textOfBytes(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return Buffer.from(bytes).toString('base64');
  }
}

import { open } from 'node:fs/promises';
import { stringify } from 'csv-stringify/sync';
import type { SchemaElement } from 'hyparquet';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { joinMembers } from '../../../lib/json/members.ts';
import type { ParquetValues, RowFormat } from './read-rows.ts';

/** Represents a row of the output: its columns with their JSON texts, in order. */
export interface OutputRow {
  columns: ReadonlyMap<string, string>;
  /** Values of the columns that a Parquet file has, as its library reads them. */
  values?: ParquetValues;
}

/** Rows that are written at once. */
const ROWS_AT_ONCE = 1_000;
/** Rows of a row group of a Parquet file. */
const GROUP_ROWS = 20_000;

/**
 * Writes the rows of a run to a file. A table has the columns of all rows, so `rows` is called twice: once to find
 * them.
 *
 * @param parquet columns of the input, if both files are Parquet files: they keep their types
 */
export async function writeRows(
  file: string,
  format: RowFormat,
  rows: () => AsyncIterable<OutputRow>,
  parquet: ReadonlyMap<string, SchemaElement> = new Map(),
): Promise<void> {
  if (format === 'jsonl')
    await writeText(file, rows(), (some) => some.map(({ columns }) => `${joinMembers(columns)}\n`).join(''));
  else if (format === 'parquet') await writeParquet(file, rows, parquet);
  else {
    const names = [...(await kindsOfColumns(rows())).keys()];
    const delimiter = format === 'csv' ? ',' : '\t';
    const table = (records: string[][]) => stringify(records, { delimiter });
    await writeText(
      file,
      rows(),
      (some) => table(some.map(({ columns }) => names.map((name) => cell(columns.get(name))))),
      table([names]),
    );
  }
}

/** Returns the text of a cell: a string as it is, nothing for null, and any other value as JSON. */
function cell(json = 'null'): string {
  return json.startsWith('"') ? JSON.parse(json) : json === 'null' ? '' : json;
}

async function writeText(
  file: string,
  rows: AsyncIterable<OutputRow>,
  text: (rows: OutputRow[]) => string,
  head = '',
): Promise<void> {
  const handle = await open(file, 'w');
  try {
    await handle.write(head);
    for await (const some of inGroups(rows, ROWS_AT_ONCE)) await handle.write(text(some));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function* inGroups<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

type Kind = 'number' | 'boolean' | 'text';

/** Returns all columns in the order in which they first appear, with the kind that all their values have. */
async function kindsOfColumns(rows: AsyncIterable<OutputRow>): Promise<Map<string, Kind | null>> {
  const kinds = new Map<string, Kind | null>();
  for await (const { columns } of rows) {
    for (const [name, json] of columns) {
      const seen = kinds.get(name);
      const kind = kindOf(json);
      if (seen === undefined) kinds.set(name, kind);
      else if (kind !== null && kind !== seen) kinds.set(name, seen === null ? kind : 'text');
    }
  }
  return kinds;
}

function kindOf(json: string): Kind | null {
  if (json === 'null') return null;
  if (json === 'true' || json === 'false') return 'boolean';
  return /^-?\d/.test(json) ? 'number' : 'text';
}

async function writeParquet(
  file: string,
  rows: () => AsyncIterable<OutputRow>,
  source: ReadonlyMap<string, SchemaElement>,
): Promise<void> {
  const columns = [...(await kindsOfColumns(rows()))].map(([name, kind]) => {
    const kept = keptElement(source.get(name));
    return { name, kind: kind ?? 'text', kept: kept !== null, element: kept ?? elementOf(name, kind) };
  });
  const schema = [{ name: 'schema', num_children: columns.length }, ...columns.map(({ element }) => element)];
  const parquet = new ParquetWriter({ writer: fileWriter(file), schema });
  for await (const group of inGroups(rows(), GROUP_ROWS)) {
    const columnData = columns.map(({ name, kind, kept }) => ({
      name,
      data: group.map((row) => (kept ? row.values?.[name] : typedValue(row.columns.get(name), kind)) ?? null),
    }));
    await parquet.write({ columnData, rowGroupSize: GROUP_ROWS });
  }
  parquet.finish();
  const handle = await open(file, 'r+');
  await handle.sync();
  await handle.close();
}

/** Returns the element of the schema for a column that is copied; null if the library cannot write its type. */
function keptElement(element: SchemaElement | undefined): SchemaElement | null {
  if (!element || element.type === 'INT96') return null;
  const { logical_type: logical, ...rest } = element;
  // The library writes the width of whole numbers in a way that others cannot read. Their converted type says the same.
  const readable = logical && logical.type !== 'INTEGER' && logical.type !== 'NULL';
  return { ...rest, ...(readable ? { logical_type: logical } : {}), repetition_type: 'OPTIONAL' };
}

function elementOf(name: string, kind: Kind | null): SchemaElement {
  const repetition_type = 'OPTIONAL';
  if (kind === 'number') return { name, type: 'DOUBLE', repetition_type };
  if (kind === 'boolean') return { name, type: 'BOOLEAN', repetition_type };
  return { name, type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' }, repetition_type };
}

function typedValue(json: string | undefined, kind: Kind): unknown {
  if (json === undefined || json === 'null') return null;
  return kind === 'text' ? cell(json) : JSON.parse(json);
}

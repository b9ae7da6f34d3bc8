import { DOWNLOAD_AGAIN, unusable } from '../unusable.ts';

/**
 * Lists the wire types of protobuf that ONNX files use (protobuf.dev, "Encoding"). Protobuf is decoded here because the
 * npm libraries load a whole file with its weights and drop unknown fields; this code leaves weights on disk and
 * preserves unknown fields byte for byte.
 */
export type WireType = 0 | 1 | 2 | 5;

/** Holds a field in memory. `bytes` is its encoded varint, its 4 or 8 bytes, or its content without the length. */
export interface WireField {
  no: number;
  wire: WireType;
  bytes: Uint8Array;
}

/** Locates a field's content in a `ByteSource`, from `start` to before `end`. */
export interface FieldSpan {
  no: number;
  wire: WireType;
  start: number;
  end: number;
}

/**
 * Reads bytes of a file or of memory. `read` returns the bytes from `start` to before `end`, and throws `engine_failed`
 * for a range beyond the end of a file.
 */
export interface ByteSource {
  readonly size: number;
  read(start: number, end: number): Uint8Array;
}

/** Returns a source whose `read` returns views of `bytes`, without a copy. */
export function memorySource(bytes: Uint8Array): ByteSource {
  return { size: bytes.length, read: (start, end) => bytes.subarray(start, end) };
}

/**
 * Yields the number, the wire type and the range of the content of each field between `start` and `end`. Throws
 * `engine_failed` for invalid protobuf, and for groups, which ONNX does not use.
 */
export function* fieldSpans(source: ByteSource, start = 0, end = source.size): Generator<FieldSpan> {
  let at = start;
  while (at < end) {
    const head = source.read(at, Math.min(at + 20, end));
    const tag = varintAt(head, 0);
    const no = Math.floor(tag.value / 8);
    const wire = tag.value % 8;
    if (no < 1) throw unusable('it has a field without a number', DOWNLOAD_AGAIN);
    let from = at + tag.next;
    let to: number;
    if (wire === 0) to = from + (varintAt(head, tag.next).next - tag.next);
    else if (wire === 1) to = from + 8;
    else if (wire === 5) to = from + 4;
    else if (wire === 2) {
      const length = varintAt(head, tag.next);
      from = at + length.next;
      to = from + length.value;
    } else throw unusable(`it has a field of the unknown wire type ${wire}`, DOWNLOAD_AGAIN);
    // A negative length would lead back to fields that were read already, without end.
    if (to < from || to > end) throw unusable('it ends in the middle of a field', DOWNLOAD_AGAIN);
    // A cast: any other wire type was refused above.
    yield { no, wire: wire as WireType, start: from, end: to };
    at = to;
  }
}

/** Reads the content of a field that `fieldSpans` found in the same source. */
export function readField(source: ByteSource, span: FieldSpan): WireField {
  return { no: span.no, wire: span.wire, bytes: source.read(span.start, span.end) };
}

/** Returns the fields of a message in memory, as views of `bytes`. Throws the same errors as `fieldSpans`. */
export function fieldsOf(bytes: Uint8Array): WireField[] {
  const source = memorySource(bytes);
  return Array.from(fieldSpans(source), (span) => readField(source, span));
}

/** Decodes a varint as a signed 64-bit integer. The result is exact up to 2^53. */
export function varint(bytes: Uint8Array): number {
  return varintAt(bytes, 0).value;
}

/**
 * Decodes one occurrence of a repeated varint field like `exactVarints`, but as numbers, which are exact up to 2^53.
 */
export function varints(field: WireField): number[] {
  return exactVarints(field).map(Number);
}

/**
 * Decodes one occurrence of a repeated varint field as signed 64-bit integers: several if it is packed, otherwise one.
 * Throws `engine_failed` if a number is cut off or has more than ten bytes.
 */
export function exactVarints({ wire, bytes }: WireField): bigint[] {
  if (wire === 0) return [exactVarintAt(bytes, 0).value];
  const values: bigint[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { value, next } = exactVarintAt(bytes, at);
    values.push(value);
    at = next;
  }
  return values;
}

const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

/** Decodes a string field. Throws `engine_failed` if it is not UTF-8. */
export function wireText(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw unusable('it has a name that is not UTF-8', DOWNLOAD_AGAIN);
  }
}

/** Returns field number `no` with an integer. */
export function varintField(no: number, value: number): WireField {
  return { no, wire: 0, bytes: encodeVarint(BigInt(value)) };
}

/** Returns field number `no` with bytes, a string (as UTF-8) or an encoded message. */
export function bytesField(no: number, content: Uint8Array | string): WireField {
  return { no, wire: 2, bytes: typeof content === 'string' ? encoder.encode(content) : content };
}

/** Returns field number `no` with a 32-bit float. */
export function floatField(no: number, value: number): WireField {
  return { no, wire: 5, bytes: new Uint8Array(Float32Array.of(value).buffer) };
}

/** Encodes a message: the fields, each with its tag, one after the other. */
export function encodeFields(fields: readonly WireField[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const { no, wire, bytes } of fields) {
    parts.push(encodeVarint(BigInt(no * 8 + wire)));
    if (wire === 2) parts.push(encodeVarint(BigInt(bytes.length)));
    parts.push(bytes);
  }
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function encodeVarint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

function varintAt(bytes: Uint8Array, start: number): { value: number; next: number } {
  const { value, next } = exactVarintAt(bytes, start);
  return { value: Number(value), next };
}

function exactVarintAt(bytes: Uint8Array, start: number): { value: bigint; next: number } {
  let value = 0n;
  for (let at = start; at < start + 10; at++) {
    const byte = bytes[at];
    if (byte === undefined) throw unusable('it ends in the middle of a number', DOWNLOAD_AGAIN);
    value |= BigInt(byte & 127) << BigInt(7 * (at - start));
    if (byte < 128) return { value: BigInt.asIntN(64, value), next: at + 1 };
  }
  throw unusable('it has a number of more than ten bytes', DOWNLOAD_AGAIN);
}

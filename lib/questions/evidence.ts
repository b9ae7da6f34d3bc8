import { pointerStep } from '../json/leaves.ts';
import { writtenNumber } from '../json/written-numbers.ts';
import type { SPAN_UNITS } from '../schema/question-fields.ts';

/** Holds a text of the request in which evidence for a value is searched. */
export interface SourceText {
  /** JSON Pointer (RFC 6901) of the text in the request. */
  source: string;
  text: string;
}

/** Names the units in which places of a text are counted: as Python counts, or as JavaScript does. */
export type SpanUnit = (typeof SPAN_UNITS)[number];

/** Describes where the request contains an answered value. */
export interface FoundEvidence {
  /** JSON Pointer (RFC 6901) of the text in the request. */
  source: string;
  /** Index of the value's first character in the text. */
  start: number;
  /** Index after its last character: in UTF-16 code units, `text.slice(start, end)` is the value. */
  end: number;
}

/**
 * Returns the evidence for a value: an occurrence in the texts that is not part of a longer word or number. Among
 * several that no earlier field has, that is the one behind the nearest mention of the field's name, or else the first.
 * For a string without such an occurrence, it is its first occurrence of any kind. In each text, the search ends
 * `LOOKED_AT` code units after the first occurrence, or after `MOST_CHECKED` of them. Returns null if there is none,
 * and for true, false, null and an empty string.
 *
 * @param value the answered value
 * @param written the value as the answer's JSON writes it: a number keeps its digits
 * @param unit unit of `start` and `end`
 * @param field name of the field that has the value
 * @param taken evidence of earlier fields in UTF-16 code units, to which this one's is added
 */
export function evidenceOf(
  value: unknown,
  written: string,
  sources: readonly SourceText[],
  {
    unit = 'utf16',
    field = '',
    taken = [],
  }: { unit?: SpanUnit | undefined; field?: string; taken?: FoundEvidence[] } = {},
): FoundEvidence | null {
  const wanted = typeof value === 'string' ? value : typeof value === 'number' ? written : '';
  if (wanted === '') return null;
  const { whole, inside } = occurrences(wanted, sources);
  const free = whole.filter((one) => !taken.some((other) => other.source === one.source && other.start === one.start));
  const possible = free.length > 0 ? free : whole;
  const distances = possible.map((one) => distanceOfName(field, one, sources));
  const found = possible[distances.indexOf(Math.min(...distances))];
  if (found) taken.push(found);
  const evidence = found ?? (typeof value === 'string' ? inside : null);
  const text = evidence && sources.find(({ source }) => source === evidence.source);
  if (!evidence || !text) return null;
  return { ...evidence, start: indexIn(text, evidence.start, unit), end: indexIn(text, evidence.end, unit) };
}

/** Holds a part of the input that decides an answer: a quote, or a sentence with its place in the only text. */
export interface Quote {
  text: string;
  probability?: number;
  start?: number;
  end?: number;
  weight?: number;
}

/** Returns the member `x_evidence` of an answer, with the places of its quotes; none if the answer has no quotes. */
export function evidenceMember(
  { quotes }: { quotes?: readonly Quote[] },
  sources: readonly SourceText[],
  unit: SpanUnit | undefined = 'utf16',
): { x_evidence?: object[] } {
  if (!quotes) return {};
  const placed = quotes.flatMap(({ start, end, ...quote }) => {
    const [only] = sources;
    const place =
      start !== undefined && end !== undefined && only
        ? { source: only.source, start: indexIn(only, start, unit), end: indexIn(only, end, unit) }
        : evidenceOf(quote.text, '', sources, { unit });
    // A quote across texts of the input, such as two messages, has no place in either.
    return place ? [{ ...place, ...quote }] : [];
  });
  return { x_evidence: placed };
}

/** Maximum number of occurrences of one value that are compared. */
const MOST_OCCURRENCES = 64;
/** Distance in UTF-16 code units within which a field's name before a value counts as its mention. */
const NAME_DISTANCE = 80;

/** Returns how far before an occurrence the field's name is mentioned; Infinity if not, or in another sentence. */
function distanceOfName(field: string, { source, start }: FoundEvidence, sources: readonly SourceText[]): number {
  const words = field
    .replaceAll(/(\p{Ll})(?=\p{Lu})/gu, '$1 ')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
    .toLowerCase();
  const text = sources.find((one) => one.source === source)?.text ?? '';
  const before = text.slice(Math.max(0, start - NAME_DISTANCE), start).toLowerCase();
  const sentence = before.slice(Math.max(0, ...[...before.matchAll(/[.!?\n](?=\s)/g)].map(({ index }) => index + 1)));
  const names = [field, words].map((name) => name.trim().toLowerCase()).filter((name) => name !== '');
  const at = Math.max(-1, ...names.map((name) => sentence.lastIndexOf(name)));
  return at < 0 ? Infinity : sentence.length - at;
}

/** Returns the occurrences of a text as a whole, and its first one of any kind. */
function occurrences(
  wanted: string,
  sources: readonly SourceText[],
): { whole: FoundEvidence[]; inside: FoundEvidence | null } {
  let inside: FoundEvidence | null = null;
  const whole: FoundEvidence[] = [];
  for (const { source, text } of sources) {
    const first = text.indexOf(wanted);
    let checked = 0;
    for (let start = first; start !== -1; start = text.indexOf(wanted, start + 1)) {
      const end = start + wanted.length;
      if (isWhole(text, start, end)) whole.push({ source, start, end });
      if (whole.length >= MOST_OCCURRENCES) return { whole, inside };
      inside ??= { source, start, end };
      // Bounds the work: a value could occur very often in a long text, such as letters among the same letters.
      if (start - first > LOOKED_AT || ++checked === MOST_CHECKED || checked * wanted.length > MOST_COMPARED) break;
    }
  }
  return { whole, inside };
}

/** Code units of a block of a text. */
const BLOCK = 1_024;
/** Numbers of characters of two code units before each block, by text: their places would be too many to keep. */
const pairs = new WeakMap<SourceText, number[]>();

/** Converts an index in UTF-16 code units to a unit. */
export function indexIn(source: SourceText, index: number, unit: SpanUnit): number {
  if (unit === 'utf16') return index;
  const { text } = source;
  const before = pairs.get(source) ?? [0];
  if (before.length === 1) {
    pairs.set(source, before);
    for (let start = 0; start < text.length; start += BLOCK)
      before.push((before.at(-1) ?? 0) + pairsBetween(text, start, start + BLOCK));
  }
  const block = Math.floor(Math.min(index, text.length) / BLOCK);
  return index - (before[block] ?? 0) - pairsBetween(text, block * BLOCK, index);
}

/** Counts the characters of two code units that begin between two indices. */
function pairsBetween(text: string, start: number, end: number): number {
  let count = 0;
  for (let i = start; i < end; i++)
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) count++;
  return count;
}

/**
 * Distance in UTF-16 code units from the first occurrence in a text up to which an occurrence as a whole word is
 * searched.
 */
const LOOKED_AT = 100_000;
/** Occurrences of a value in a text that are checked for being whole, and code units that they have together. */
const MOST_CHECKED = 1_024;
const MOST_COMPARED = 1_000_000;

const WORD = /[\p{L}\p{N}_]/u;
const IN_NUMBER = /[\p{N}.,]/u;

/** Tells whether the text from `start` to `end` is whole: no word or number continues beyond either end. */
function isWhole(text: string, start: number, end: number): boolean {
  const [before, first] = [characterBefore(text, start), text.charAt(start)];
  const [last, after] = [text.charAt(end - 1), String.fromCodePoint(text.codePointAt(end) ?? 0x20)];
  if (WORD.test(first) && WORD.test(before)) return false;
  if (WORD.test(last) && WORD.test(after)) return false;
  // 49.9 is not part of 49.90, nor 5 of 1,5: a point or comma with digits on both sides belongs to the number.
  const digit = /\p{N}/u;
  if (digit.test(first) && IN_NUMBER.test(before) && digit.test(characterBefore(text, start - 1))) return false;
  return !(digit.test(last) && IN_NUMBER.test(after) && digit.test(text[end + 1] ?? ''));
}

/** Returns the character before an index, both code units of a surrogate pair; a space if there is none. */
function characterBefore(text: string, at: number): string {
  if (at <= 0) return ' ';
  const low = text.charCodeAt(at - 1);
  return low >= 0xdc00 && low <= 0xdfff && at > 1 ? text.slice(at - 2, at) : text.charAt(at - 1);
}

/**
 * Returns the strings and numbers inside a JSON value as texts with their JSON Pointers, in document order.
 *
 * @param source JSON Pointer of the value itself
 */
export function textsIn(value: unknown, source: string): SourceText[] {
  if (typeof value === 'string') return [{ source, text: value }];
  if (typeof value === 'number') return [{ source, text: String(value) }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    textsIn(writtenNumber(value, name) ?? inner, `${source}/${pointerStep(name)}`),
  );
}

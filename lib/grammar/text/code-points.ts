/**
 * Represents a set of Unicode code points: inclusive ranges `[first, last, first, last, ...]`, ascending, none touching
 * another.
 */
export type CodePoints = readonly number[];

export const LAST_CODE_POINT = 0x10_ff_ff;
export const ALL: CodePoints = [0, LAST_CODE_POINT];

/**
 * The characters of generated strings: all but lone surrogates and control characters other than tab, line feed and
 * carriage return. Without the other control characters no `\u` escape is ever written, so a model that means an
 * accented letter cannot end up in a control character.
 */
export const TEXT: CodePoints = [9, 10, 13, 13, 0x20, 0xd7_ff, 0xe0_00, LAST_CODE_POINT];

/** Yields the inclusive ranges of a set, ascending. */
export function* rangesOf(set: CodePoints): Generator<readonly [first: number, last: number], undefined> {
  for (let i = 0; i + 1 < set.length; i += 2) yield [set[i] ?? 0, set[i + 1] ?? 0];
}

/** Returns the code point that a text begins with; -1 for an empty one. */
export function codePointOf(text: string): number {
  return text.codePointAt(0) ?? -1;
}

export function union(...sets: readonly CodePoints[]): CodePoints {
  const ranges = sets.flatMap((set) => [...rangesOf(set)]).sort((a, b) => a[0] - b[0]);
  const out: number[] = [];
  for (const [first, last] of ranges) {
    const end = out.at(-1);
    if (end !== undefined && first <= end + 1) out[out.length - 1] = Math.max(end, last);
    else out.push(first, last);
  }
  return out;
}

/** Returns all code points from 0 to `LAST_CODE_POINT` that are not in a set. */
export function complement(set: CodePoints): CodePoints {
  const out: number[] = [];
  let next = 0;
  for (const [first, last] of rangesOf(set)) {
    if (first > next) out.push(next, first - 1);
    next = last + 1;
  }
  if (next <= LAST_CODE_POINT) out.push(next, LAST_CODE_POINT);
  return out;
}

export function intersection(a: CodePoints, b: CodePoints): CodePoints {
  const out: number[] = [];
  const [left, right] = [rangesOf(a), rangesOf(b)];
  let [x, y] = [left.next().value, right.next().value];
  while (x && y) {
    const first = Math.max(x[0], y[0]);
    const last = Math.min(x[1], y[1]);
    if (first <= last) out.push(first, last);
    if (x[1] < y[1]) x = left.next().value;
    else y = right.next().value;
  }
  return out;
}

export const DIGIT: CodePoints = [0x30, 0x39];
export const WORD: CodePoints = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
/** The characters that `\s` matches: WhiteSpace and LineTerminator of ECMA-262. */
export const SPACE: CodePoints = [
  9, 13, 0x20, 0x20, 0xa0, 0xa0, 0x16_80, 0x16_80, 0x20_00, 0x20_0a, 0x20_28, 0x20_29, 0x20_2f, 0x20_2f, 0x20_5f,
  0x20_5f, 0x30_00, 0x30_00, 0xfe_ff, 0xfe_ff,
];
/** The line terminators of ECMA-262, which `.` does not match. */
export const LINE_END: CodePoints = [10, 10, 13, 13, 0x20_28, 0x20_29];

const properties = new Map<string, CodePoints>();
let scanned: readonly string[] | undefined;

/**
 * Ranges in which a Unicode property holds for every code point or for none (unassigned, private use, noncharacters).
 * Testing one code point of each is enough.
 */
const ALIKE: readonly (readonly [number, number])[] = Array.from({ length: 13 }, (_, i) => (i + 4) << 16).flatMap(
  (plane) => [
    [plane === 0xe_00_00 ? 0xe_10_00 : plane, plane + 0xff_fd] as const,
    [plane + 0xff_fe, plane + 0xff_ff] as const,
  ],
);

/**
 * Returns the code points that `\p{…}` matches, found with the RegExp of the JavaScript engine.
 *
 * @param name the text between the braces, which must be valid there
 */
export function unicodeProperty(name: string): CodePoints {
  const known = properties.get(name);
  if (known) return known;
  scanned ??= [basic(0, 0xd7_ff), basic(0xe0_00, 0xff_ff) + beyond(0x1_00_00, 0x3_ff_ff), beyond(0xe_00_00, 0xe_0f_ff)];
  const one = new RegExp(`\\p{${name}}`, 'u');
  const found = ALIKE.flatMap((range) => (one.test(String.fromCodePoint(range[0])) ? range : []));
  for (const text of scanned) {
    for (const { 0: run } of text.matchAll(new RegExp(`\\p{${name}}+`, 'gu'))) {
      found.push(codePointOf(run), codePointOf(run.slice(endsInPair(run) ? -2 : -1)));
    }
  }
  const set = union(found);
  if (properties.size < 64) properties.set(name, set);
  return set;
}

function endsInPair(text: string): boolean {
  const unit = text.charCodeAt(text.length - 1);
  return unit >= 0xdc_00 && unit <= 0xdf_ff;
}

/** Returns the characters from `first` to `last`, both in the basic plane, as one text. */
function basic(first: number, last: number): string {
  const units = Uint16Array.from({ length: last - first + 1 }, (_, i) => first + i);
  return new TextDecoder('utf-16le', { ignoreBOM: true }).decode(units);
}

/** Returns the characters of whole blocks of 1,024 beyond the basic plane, from `first` to `last`, as one text. */
function beyond(first: number, last: number): string {
  const seconds = Array.from({ length: 0x4_00 }, (_, i) => String.fromCharCode(0xdc_00 + i));
  const blocks: string[] = [];
  for (let at = first; at <= last; at += 0x4_00) {
    const high = String.fromCharCode(0xd8_00 + ((at - 0x1_00_00) >> 10));
    blocks.push(high, seconds.join(high));
  }
  return blocks.join('');
}

/** A set of Unicode code points: inclusive ranges `[first, last, first, last, ...]`, ascending, none touching another. */
export type CodePoints = readonly number[];

export const LAST_CODE_POINT = 0x10_ff_ff;
export const ALL: CodePoints = [0, LAST_CODE_POINT];

/**
 * What a generated string may hold: every character but lone surrogates and control characters, of which only tab, line feed and
 * carriage return are kept. The other control characters have no place in an answer, and leaving them out leaves no
 * `\u` escape to write, so a model that means an accented letter cannot end in a control character.
 */
export const TEXT: CodePoints = [9, 10, 13, 13, 0x20, 0xd7_ff, 0xe0_00, LAST_CODE_POINT];

export function union(...sets: readonly CodePoints[]): CodePoints {
  const ranges: [number, number][] = [];
  for (const set of sets) for (let i = 0; i < set.length; i += 2) ranges.push([set[i]!, set[i + 1]!]);
  ranges.sort((a, b) => a[0] - b[0]);
  const out: number[] = [];
  for (const [first, last] of ranges) {
    if (out.length > 0 && first <= out.at(-1)! + 1) out[out.length - 1] = Math.max(out.at(-1)!, last);
    else out.push(first, last);
  }
  return out;
}

export function complement(set: CodePoints): CodePoints {
  const out: number[] = [];
  let next = 0;
  for (let i = 0; i < set.length; i += 2) {
    if (set[i]! > next) out.push(next, set[i]! - 1);
    next = set[i + 1]! + 1;
  }
  if (next <= LAST_CODE_POINT) out.push(next, LAST_CODE_POINT);
  return out;
}

export function intersection(a: CodePoints, b: CodePoints): CodePoints {
  const out: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const first = Math.max(a[i]!, b[j]!);
    const last = Math.min(a[i + 1]!, b[j + 1]!);
    if (first <= last) out.push(first, last);
    if (a[i + 1]! < b[j + 1]!) i += 2;
    else j += 2;
  }
  return out;
}

export const DIGIT: CodePoints = [0x30, 0x39];
export const WORD: CodePoints = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
/** WhiteSpace and LineTerminator of ECMA-262. */
export const SPACE: CodePoints = [
  9, 13, 0x20, 0x20, 0xa0, 0xa0, 0x16_80, 0x16_80, 0x20_00, 0x20_0a, 0x20_28, 0x20_29, 0x20_2f, 0x20_2f, 0x20_5f,
  0x20_5f, 0x30_00, 0x30_00, 0xfe_ff, 0xfe_ff,
];
/** What `.` leaves out: the line terminators of ECMA-262. */
export const LINE_END: CodePoints = [10, 10, 13, 13, 0x20_28, 0x20_29];

const properties = new Map<string, CodePoints>();
let blocks: readonly string[] | undefined;

/**
 * The set of a `\p{...}`; the host's own RegExp knows it. Planes 4 to 13 hold no characters, so one stands for all.
 *
 * @param name what stands between the braces; a RegExp was made with it before
 */
export function unicodeProperty(name: string): CodePoints {
  const known = properties.get(name);
  if (known) return known;
  blocks ??= [every(0, 0xd7_ff), every(0xe0_00, 0x3_ff_ff), every(0xe_00_00, LAST_CODE_POINT)];
  const found: number[] = new RegExp(`\\p{${name}}`, 'u').test('\u{40000}') ? [0x4_00_00, 0xd_ff_ff] : [];
  for (const block of blocks) {
    for (const { 0: run } of block.matchAll(new RegExp(`\\p{${name}}+`, 'gu'))) {
      found.push(run.codePointAt(0)!, run.codePointAt(run.length - (endsInPair(run) ? 2 : 1))!);
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

function every(first: number, last: number): string {
  const parts: string[] = [];
  for (let from = first; from <= last; from += 0x10_00) {
    const length = Math.min(last, from + 0xf_ff) - from + 1;
    parts.push(String.fromCodePoint(...Array.from({ length }, (_, i) => from + i)));
  }
  return parts.join('');
}

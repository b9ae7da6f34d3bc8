import { JsonCursor } from '../../lib/json/scan.ts';

/**
 * Represents a JSON value as Python's `json.loads` reads it: numbers keep the difference between 1 and 1.0, and objects
 * keep the order of their members, even of those with names such as `10`.
 */
export type PyValue = null | boolean | string | PyNumber | readonly PyValue[] | PyObject;
export type PyObject = ReadonlyMap<string, PyValue>;

/** Holds a number as Python writes it: `repr(value)`. */
export class PyNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Creates a whole number. */
export const pyInt = (value: number): PyNumber => new PyNumber(String(value));

/** Tells whether a value is an object. */
export const isPyObject = (value: PyValue): value is PyObject => value instanceof Map;

/** Tells whether Python counts a value as false: null, false, 0, and an empty text, list or object. */
export function isFalsy(value: PyValue): boolean {
  if (value === null || value === false || value === '') return true;
  if (value instanceof PyNumber) return Number(value.text) === 0;
  return typeof value === 'object' && (isList(value) ? value.length : value.size) === 0;
}

/** Creates an object from its members, in order. */
export const pyObject = (...members: [string, PyValue][]): PyObject => new Map(members);

/**
 * Parses a JSON text as Python does. If a name is repeated, the last value counts, at the position of the first.
 *
 * @param text valid JSON; its syntax is not checked
 */
export function parsePython(text: string): PyValue {
  const cursor = new JsonCursor(text);
  const value = (): PyValue => {
    switch (cursor.peek()) {
      case '{': {
        const members = new Map<string, PyValue>();
        for (const name of cursor.members()) members.set(name, value());
        return members;
      }
      case '[': {
        const items: PyValue[] = [];
        for (const _ of cursor.items()) items.push(value());
        return items;
      }
      case '"':
        return cursor.string();
    }
    const word = cursor.word();
    if (word === 'null') return null;
    return word === 'true' || word === 'false' ? word === 'true' : new PyNumber(pythonNumber(word));
  };
  return value();
}

/** Returns how Python writes a number that stands in a JSON text as `digits`. */
function pythonNumber(digits: string): string {
  if (/^-?\d+$/.test(digits)) return digits === '-0' ? '0' : digits;
  const value = Number(digits);
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  return pythonFloat(value);
}

/**
 * Formats a double as Python's `repr` does. Both languages write the shortest digits that read back the same, but
 * Python changes to an exponent below 1e-4 and from 1e16 on, and always marks a float as one.
 */
export function pythonFloat(value: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa = '0', exponent = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const power = Number(exponent);
  if (power < -4 || power >= 16) {
    const rest = digits.slice(1);
    const padded = String(Math.abs(power)).padStart(2, '0');
    return `${sign}${digits[0]}${rest === '' ? '' : `.${rest}`}e${power < 0 ? '-' : '+'}${padded}`;
  }
  if (power < 0) return `${sign}0.${'0'.repeat(-power - 1)}${digits}`;
  const whole = digits.slice(0, power + 1).padEnd(power + 1, '0');
  return `${sign}${whole}.${digits.slice(power + 1) || '0'}`;
}

/** Sets the layout of a JSON text, as the arguments of Python's `json.dumps`. Default: one line, `", "` and `": "`. */
export interface JsonLayout {
  /** Spaces of indentation for each level; members and items are then on lines of their own. */
  indent?: number;
  /** True for separators without spaces. */
  compact?: boolean;
  /** True to sort the members of objects by the code points of their names. */
  sorted?: boolean;
  /** True to escape all characters outside ASCII (`ensure_ascii`). */
  ascii?: boolean;
}

/** Writes a value as Python's `json.dumps(value, ensure_ascii=False)` does. */
export function toJson(value: PyValue, layout: JsonLayout = {}): string {
  const { indent, compact = false, sorted = false, ascii = false } = layout;
  const colon = compact ? ':' : ': ';
  const text = (string: string) => {
    const quoted = JSON.stringify(string);
    if (!ascii) return quoted;
    return quoted.replaceAll(/[\u007f-\uffff]/g, (unit) =>
      unit === '\u007f' ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  };
  const write = (one: PyValue, depth: number): string => {
    if (typeof one === 'string') return text(one);
    if (one === null || typeof one === 'boolean') return String(one);
    if (one instanceof PyNumber) return one.text;
    const list = isList(one);
    const parts = list
      ? one.map((item) => write(item, depth + 1))
      : [...(sorted ? sortedMembers(one) : one)].map(
          ([name, item]) => `${text(name)}${colon}${write(item, depth + 1)}`,
        );
    const [open, close] = list ? '[]' : '{}';
    if (parts.length === 0) return `${open}${close}`;
    if (indent === undefined) return `${open}${parts.join(compact ? ',' : ', ')}${close}`;
    const line = `\n${' '.repeat(indent * (depth + 1))}`;
    return `${open}${line}${parts.join(`,${line}`)}\n${' '.repeat(indent * depth)}${close}`;
  };
  return write(value, 0);
}

function isList(value: readonly PyValue[] | PyObject): value is readonly PyValue[] {
  return Array.isArray(value);
}

/** Sorts members by the code points of their names; JavaScript's own order is that of UTF-16 code units. */
function sortedMembers(members: PyObject): [string, PyValue][] {
  return [...members].sort(([one], [other]) => compareCodePoints(one, other));
}

/** Compares two texts by their code points, as Python does. */
export function compareCodePoints(one: string, other: string): number {
  const [a, b] = [[...one], [...other]];
  const different = a.findIndex((character, i) => character !== b[i]);
  if (different < 0) return a.length - b.length;
  if (different >= b.length) return 1;
  return (a[different]?.codePointAt(0) ?? 0) - (b[different]?.codePointAt(0) ?? 0);
}

/** Returns a string as it is, any other value as JSON. */
export function textOrJson(value: PyValue, layout?: JsonLayout): string {
  return typeof value === 'string' ? value : toJson(value, layout);
}

/** Writes a value as Python's `str` does: a string as it is, any other value as Python source. */
export function pythonText(value: PyValue): string {
  return typeof value === 'string' ? value : pythonSource(value);
}

function pythonSource(value: PyValue): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value instanceof PyNumber) return value.text;
  if (typeof value === 'string') {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    const escaped = value.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`);
    return `${quote}${escaped.replaceAll(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, escapedCharacter)}${quote}`;
  }
  if (isList(value)) return `[${value.map(pythonSource).join(', ')}]`;
  return `{${[...value].map(([name, item]) => `${pythonSource(name)}: ${pythonSource(item)}`).join(', ')}}`;
}

/** Returns the escape of a character that Python does not print. */
function escapedCharacter(character: string): string {
  const short = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[character];
  if (short) return short;
  const code = (character.codePointAt(0) ?? 0).toString(16);
  if (code.length <= 2) return `\\x${code.padStart(2, '0')}`;
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\U${code.padStart(8, '0')}`;
}

/** Number of elements from which a list gets the numbers of its elements. */
const NUMBERED = 8;

/**
 * Writes the index of each element into lists of eight or more elements, at any depth, so that a model can find an
 * element by its number.
 */
export function withIndices(value: PyValue): PyValue {
  if (Array.isArray(value)) {
    const items = value.map((item) => withIndices(item));
    if (items.length < NUMBERED) return items;
    return items.map((item, i) =>
      isPyObject(item)
        ? new Map<string, PyValue>([['_index', pyInt(i)], ...item])
        : pyObject(['_index', pyInt(i)], ['value', item]),
    );
  }
  if (!isPyObject(value)) return value;
  return new Map([...value].map(([name, item]) => [name, withIndices(item)]));
}

const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const LEADING = new RegExp(`^[${SPACE}]+`);
const TRAILING = new RegExp(`[${SPACE}]+$`);
const RUNS = new RegExp(`[${SPACE}]+`);

/** Removes white space at the beginning of a text, as Python's `str.lstrip` does. */
export const lstrip = (text: string): string => text.replace(LEADING, '');

/** Removes white space at both ends of a text, as Python's `str.strip` does. */
export function strip(text: string): string {
  const start = lstrip(text);
  // A pattern that ends in `+$` takes quadratic time on long runs of spaces inside a text.
  let end = start.length;
  while (end > 0 && TRAILING.test(start.charAt(end - 1))) end--;
  return start.slice(0, end);
}

/** Splits a text at runs of white space, as Python's `str.split()` does. */
export const splitWords = (text: string): string[] => text.split(RUNS).filter((word) => word !== '');

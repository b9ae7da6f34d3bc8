import { endOfString } from './scan.ts';

/** Numbers of requests, by the object or list that contains them, if one of them is a whole number beyond 2^53. */
const written = new WeakMap<object, NotedNumbers>();

/** Least number of digits of a whole number beyond 2^53. */
const SHORTEST = 16;
/** Matches texts that may have such a number. */
const LONG_NUMBER = /\d{16}/;
/** Matches texts in which `JSON.stringify` may have written such a number. */
const LARGE_NUMBER = /\d{16}|e\+/;
const WHOLE = /^-?\d+$/;

/**
 * Parses JSON as `JSON.parse` does, and notes the digits of whole numbers beyond 2^53: 9007199254740993 becomes the
 * number 9007199254740992, which as an id is another one. `writtenNumber` returns the noted digits.
 *
 * @throws SyntaxError if the text is not valid JSON
 */
export function parseNotingNumbers(text: string): ReturnType<typeof JSON.parse> {
  const value = JSON.parse(text);
  if (!LONG_NUMBER.test(text)) return value;
  eachNumber(text, value, (holder, open, start, end) => {
    if (!open.noted) {
      if (end - start < SHORTEST || !isLong(text.slice(start, end))) return;
      open.noted = new NotedNumbers(text);
      written.set(holder, open.noted);
    }
    open.noted.add(open, start, end);
  });
  return value;
}

/**
 * Returns the digits of a whole number beyond 2^53, as they were in the text that `parseNotingNumbers` read; undefined
 * for any other value.
 *
 * @param holder the parsed object or list that contains the number
 * @param key its name or index there
 */
export function writtenNumber(holder: object, key: string | number): string | undefined {
  const digits = written.get(holder)?.digits(Array.isArray(holder) ? Number(key) : key);
  // If a name is repeated, a later value that is no number has replaced the one that was noted.
  return digits !== undefined && (holder as Members)[key] === Number(digits) ? digits : undefined;
}

/** Tells whether these digits are a whole number that a double may change. */
function isLong(digits: string): boolean {
  return WHOLE.test(digits) && !Number.isSafeInteger(Number(digits));
}

/**
 * Formats a value as `JSON.stringify` does, but writes numbers with noted digits (`writtenNumber`) as the request did.
 */
export function stringifyAsWritten(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  if (!LARGE_NUMBER.test(text)) return text;
  const pieces: string[] = [];
  let copied = 0;
  eachNumber(text, value, (_, open, start, end) => {
    const digits = open.noted?.digits(keyOf(open, text));
    if (digits === undefined || Number(digits) !== Number(text.slice(start, end))) return;
    pieces.push(text.slice(copied, start), digits);
    copied = end;
  });
  return pieces.join('') + text.slice(copied);
}

/** Describes an object or list that is open while a text is read. */
interface Open {
  /** The parsed object or list; undefined if a later value of the same name has replaced it. */
  readonly holder: object | undefined;
  readonly list: boolean;
  index: number;
  /** Range of the current member's name in the text. */
  name: readonly [start: number, end: number] | null;
  noted: NotedNumbers | undefined;
}

/** Represents any object or list, to read a member. */
interface Members {
  readonly [key: string | number]: unknown;
}

/** Returns the name or index of the value that is being read in an open object or list. */
function keyOf({ list, index, name }: Pick<Open, 'list' | 'index' | 'name'>, text: string): string | number {
  if (list) return index;
  const [start, end] = name ?? [0, 0];
  const inner = text.slice(start + 1, end - 1);
  return inner.includes('\\') ? JSON.parse(text.slice(start, end)) : inner;
}

/**
 * Holds the places of the numbers of an object or list in the text of a request. Most are never asked for, so their
 * names and digits are read at the first question: a request may have 250,000 of them.
 */
class NotedNumbers {
  readonly #text: string;
  readonly #places: (Pick<Open, 'list' | 'index' | 'name'> & { start: number; end: number })[] = [];
  #digits: Map<string | number, string> | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  add({ list, index, name }: Open, start: number, end: number): void {
    this.#places.push({ list, index, name, start, end });
  }

  /** Returns the digits of the number under `key`; undefined if a double holds it exactly. */
  digits(key: string | number): string | undefined {
    this.#digits ??= this.#read();
    return this.#digits.get(key);
  }

  #read(): Map<string | number, string> {
    const all = new Map<string | number, string>();
    for (const place of this.#places) {
      const digits = this.#text.slice(place.start, place.end);
      // If a name is repeated, the last value counts.
      if (isLong(digits)) all.set(keyOf(place, this.#text), digits);
      else if (!place.list) all.delete(keyOf(place, this.#text));
    }
    this.#places.length = 0;
    return all;
  }
}

/**
 * Calls `visit` with the place of each number in an object or list: in the parsed value (`holder`, `keyOf(open)`), and
 * in the text. Takes less than half the time of a function that is passed to `JSON.parse`.
 *
 * @param text valid JSON of `value`
 */
function eachNumber(
  text: string,
  value: unknown,
  visit: (holder: object, open: Open, start: number, end: number) => void,
): void {
  const stack: Open[] = [];
  let top: Open | undefined;
  const number = /[-+.\deE]+/y;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: {
        const end = endOfString(text, at);
        if (top && !top.list) top.name ??= [at, end];
        at = end - 1;
        break;
      }
      case 0x5b: // [
      case 0x7b: {
        const child = top ? (top.holder as Members | undefined)?.[keyOf(top, text)] : value;
        const holder = typeof child === 'object' && child !== null ? child : undefined;
        top = { holder, list: text[at] === '[', index: 0, name: null, noted: holder && written.get(holder) };
        stack.push(top);
        break;
      }
      case 0x5d: // ]
      case 0x7d: // }
        stack.pop();
        top = stack.at(-1);
        break;
      case 0x2c: // ,
        if (top) {
          top.index++;
          top.name = null;
        }
        break;
      case 0x2d: // -
      case 0x30:
      case 0x31:
      case 0x32:
      case 0x33:
      case 0x34:
      case 0x35:
      case 0x36:
      case 0x37:
      case 0x38:
      case 0x39: {
        const start = at;
        number.lastIndex = at;
        number.test(text);
        at = number.lastIndex - 1;
        if (top?.holder) visit(top.holder, top, start, at + 1);
      }
    }
  }
}

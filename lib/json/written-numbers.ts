import { endOfString } from './scan.ts';

/** Holds how the request wrote objects and lists that `JSON.stringify` would write otherwise. */
const written = new WeakMap<object, Writing>();

interface Writing {
  numbers?: NotedNumbers;
  /** Names in the order of the request, if JavaScript orders them otherwise: whole numbers come first there. */
  names?: string[];
}

/**
 * Matches texts that may have a number that JavaScript writes otherwise: with an exponent, a zero at the end or at the
 * beginning, or more digits than a double holds.
 */
const ODD_NUMBER = /\d[eE]|\.\d*0(?!\d)|[\d.]{16}|-0|0\.0{6}/;
/** Matches texts that may have a name that JavaScript orders before others. */
const INDEX_NAME = /"\d+"\s*:/;
const INDEX = /^(?:0|[1-9]\d*)$/;

/**
 * Parses JSON as `JSON.parse` does, and notes what the value does not show: how numbers such as 1.0 and
 * 9007199254740993 are written (`writtenNumber`), and the order of names such as "10" (`entriesAsWritten`).
 *
 * @throws SyntaxError if the text is not valid JSON
 */
export function parseAsWritten(text: string): ReturnType<typeof JSON.parse> {
  const value = JSON.parse(text);
  const odd = ODD_NUMBER.test(text);
  const indexed = INDEX_NAME.test(text);
  if (!odd && !indexed) return value;
  const noted = (holder: object): Writing => {
    const notes = written.get(holder) ?? {};
    written.set(holder, notes);
    return notes;
  };
  walk(text, value, {
    number(holder, open, start, end) {
      if (!written.get(holder)?.numbers && isPlain(text.slice(start, end))) return;
      const notes = noted(holder);
      notes.numbers ??= new NotedNumbers(text);
      notes.numbers.add(open, start, end);
    },
    ...(indexed && {
      object(holder, names) {
        if (names.some((name) => INDEX.test(name))) noted(holder).names = [...new Set(names)];
        // If a name is repeated, this object has replaced another one.
        else delete written.get(holder)?.names;
      },
    }),
  });
  return value;
}

/**
 * Returns a number as the text that `parseAsWritten` read writes it; undefined for any other value, and for a number
 * that JavaScript writes alike.
 *
 * @param holder the parsed object or list that contains the number
 * @param key its name or index there
 */
export function writtenNumber(holder: object, key: string | number): string | undefined {
  const text = notedNumber(holder, key);
  return text !== undefined && isPlain(text) ? undefined : text;
}

/** Returns the same as `writtenNumber`, and also the texts of some numbers that JavaScript writes alike. */
function notedNumber(holder: object, key: string | number): string | undefined {
  const text = written.get(holder)?.numbers?.text(Array.isArray(holder) ? Number(key) : key);
  // If a name is repeated, a later value that is no number has replaced the one that was noted.
  return text !== undefined && Object.is((holder as Members)[key], Number(text)) ? text : undefined;
}

/** Returns the members of an object in the order of the request that it was read from, also those named `10`. */
export function entriesAsWritten<T>(object: { readonly [name: string]: T }): [name: string, value: T][] {
  // `Object.entries` takes five times as long for 120,000 members.
  const names = written.get(object)?.names ?? Object.keys(object);
  return names.map((name) => [name, object[name] as T]);
}

/** Tells whether JavaScript writes a number as this text does. */
function isPlain(text: string): boolean {
  return String(Number(text)) === text;
}

/**
 * Formats a value as JSON in one line, with the numbers and the order of names of the request that it was read from.
 *
 * @param spaced true for a space after commas and colons, as Python's `json.dumps` writes
 */
export function stringifyAsWritten(value: unknown, spaced = false): string {
  const [comma, colon] = spaced ? [', ', ': '] : [',', ':'];
  // `parseJson` bounds the depth, so recursion is safe.
  const write = (one: unknown): string => {
    if (typeof one !== 'object' || one === null) return JSON.stringify(one);
    const member = (key: string | number, inner: unknown) =>
      typeof inner === 'number' ? (notedNumber(one, key) ?? JSON.stringify(inner)) : write(inner);
    if (Array.isArray(one)) return `[${one.map((item, i) => member(i, item)).join(comma)}]`;
    return `{${entriesAsWritten(one as Members)
      .map(([name, inner]) => `${JSON.stringify(name)}${colon}${member(name, inner)}`)
      .join(comma)}}`;
  };
  return write(value);
}

/** Describes an object or list that is open while a text is read. */
interface Open {
  /** The parsed object or list; undefined if a later value of the same name has replaced it. */
  readonly holder: object | undefined;
  readonly list: boolean;
  index: number;
  /** Range of the current member's name in the text. */
  name: readonly [start: number, end: number] | null;
  /** Names so far, if the walk collects them. */
  readonly names: string[] | null;
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
 * names and texts are read at the first question: a request may have 250,000 of them.
 */
class NotedNumbers {
  readonly #text: string;
  /** Start and end of each number of a list, by index. */
  readonly #ofList: number[] = [];
  readonly #ofObject: { name: Open['name']; start: number; end: number }[] = [];
  #texts: Map<string | number, string> | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  add({ list, index, name }: Open, start: number, end: number): void {
    if (list) {
      this.#ofList[2 * index] = start;
      this.#ofList[2 * index + 1] = end;
    } else this.#ofObject.push({ name, start, end });
  }

  /** Returns the text of the number under `key`; undefined if none is noted. */
  text(key: string | number): string | undefined {
    const start = typeof key === 'number' ? this.#ofList[2 * key] : undefined;
    if (start !== undefined) return this.#text.slice(start, this.#ofList[2 * Number(key) + 1]);
    this.#texts ??= this.#read();
    return this.#texts.get(key);
  }

  #read(): Map<string | number, string> {
    const all = new Map<string | number, string>();
    // If a name is repeated, the last value counts.
    for (const { name, start, end } of this.#ofObject) {
      all.set(keyOf({ list: false, index: 0, name }, this.#text), this.#text.slice(start, end));
    }
    this.#ofObject.length = 0;
    return all;
  }
}

interface Visitor {
  /** Receives the place of each number: in the parsed value (`holder`, `keyOf(open)`), and in the text. */
  number(holder: object, open: Open, start: number, end: number): void;
  /** Receives at the end of each object its names in the order of the text. */
  object?(holder: object, names: readonly string[]): void;
}

/**
 * Walks through the objects and lists of a JSON text. Takes less than half the time of a function that is passed to
 * `JSON.parse`.
 *
 * @param text valid JSON of `value`
 */
function walk(text: string, value: unknown, visit: Visitor): void {
  const stack: Open[] = [];
  let top: Open | undefined;
  const number = /[-+.\deE]+/y;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: {
        const end = endOfString(text, at);
        if (top && !top.list && !top.name) {
          top.name = [at, end];
          top.names?.push(String(keyOf(top, text)));
        }
        at = end - 1;
        break;
      }
      case 0x5b: // [
      case 0x7b: {
        const child = top ? (top.holder as Members | undefined)?.[keyOf(top, text)] : value;
        const holder = typeof child === 'object' && child !== null ? child : undefined;
        const list = text[at] === '[';
        top = { holder, list, index: 0, name: null, names: visit.object && !list ? [] : null };
        stack.push(top);
        break;
      }
      case 0x5d: // ]
      case 0x7d: // }
        if (top?.holder && top.names) visit.object?.(top.holder, top.names);
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
        if (top?.holder) visit.number(top.holder, top, start, at + 1);
      }
    }
  }
}

import { endOfString } from './scan.ts';

/** Whole numbers that a double changes, as the request wrote them, by the object or list that contains them. */
const written = new WeakMap<object, Map<string | number, string>>();

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
  eachNumber(text, value, (holder, key, start, end) => {
    if (end - start < SHORTEST && !written.has(holder)) return;
    const digits = text.slice(start, end);
    const number = (holder as { readonly [key: string | number]: unknown })[key];
    // If a name is repeated, the last value counts, so an earlier one is not noted.
    if (!WHOLE.test(digits) || number !== Number(digits)) written.get(holder)?.delete(key);
    else if (!Number.isSafeInteger(number)) {
      const numbers = written.get(holder);
      if (numbers) numbers.set(key, digits);
      else written.set(holder, new Map([[key, digits]]));
    }
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
  const numbers = written.get(holder);
  return numbers?.get(Array.isArray(holder) ? Number(key) : key);
}

/**
 * Formats a value as `JSON.stringify` does, but writes numbers with noted digits (`writtenNumber`) as the request did.
 */
export function stringifyAsWritten(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  if (!LARGE_NUMBER.test(text)) return text;
  const pieces: string[] = [];
  let copied = 0;
  eachNumber(text, value, (holder, key, start, end) => {
    const digits = writtenNumber(holder, key);
    if (digits === undefined) return;
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
}

/**
 * Calls `visit` with the place of each number in an object or list: in the parsed value, and in the text. Takes less
 * than half the time of a function that is passed to `JSON.parse`.
 *
 * @param text valid JSON of `value`
 */
function eachNumber(
  text: string,
  value: unknown,
  visit: (holder: object, key: string | number, start: number, end: number) => void,
): void {
  const stack: Open[] = [];
  let top: Open | undefined;
  const key = (open: Open): string | number => (open.list ? open.index : JSON.parse(text.slice(...(open.name ?? []))));
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
        const child = top
          ? (top.holder as { readonly [key: string | number]: unknown } | undefined)?.[key(top)]
          : value;
        const holder = typeof child === 'object' && child !== null ? child : undefined;
        top = { holder, list: text[at] === '[', index: 0, name: null };
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
        if (top?.holder) visit(top.holder, key(top), start, at + 1);
      }
    }
  }
}

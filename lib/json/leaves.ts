import { JsonCursor } from './scan.ts';

/** Locates a string, number, boolean or null inside a JSON text. */
export interface Leaf {
  /** JSON Pointer (RFC 6901) of the value, from the root of the text. */
  path: string;
  /** Index of the value's first UTF-16 code unit in the text. */
  start: number;
  /** Index after its last code unit: `text.slice(start, end)` is the value as written. */
  end: number;
}

/**
 * Returns the positions of the strings, numbers, booleans and nulls in a JSON text, in the order in which they are
 * written. Names of members are not included.
 *
 * @param text valid JSON; its syntax is not checked
 */
export function leavesOf(text: string): Leaf[] {
  const leaves: Leaf[] = [];
  const cursor = new JsonCursor(text);
  const walk = (path: string): void => {
    const first = cursor.peek();
    if (first === '{') for (const name of cursor.members()) walk(`${path}/${pointerStep(name)}`);
    else if (first === '[') for (const i of cursor.items()) walk(`${path}/${i}`);
    else {
      const start = cursor.at;
      if (first === '"') cursor.string();
      else cursor.word();
      leaves.push({ path, start, end: cursor.at });
    }
  };
  walk('');
  return leaves;
}

/** Formats a name as one step of a JSON Pointer (RFC 6901, section 3). */
export function pointerStep(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

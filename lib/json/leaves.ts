import { endOfString } from './scan.ts';

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
  let at = 0;
  const skipSpace = () => {
    while (/\s/.test(text[at] ?? '')) at++;
  };
  const walk = (path: string): void => {
    skipSpace();
    if (text[at] === '{') walkMembers(path);
    else if (text[at] === '[') walkItems(path);
    else {
      const start = at;
      if (text[at] === '"') at = endOfString(text, at);
      else while (at < text.length && !/[\s,\]}]/.test(text[at] ?? '')) at++;
      leaves.push({ path, start, end: at });
    }
  };
  const walkMembers = (path: string): void => {
    for (let more = enter('}'); more; more = next()) {
      const nameEnd = endOfString(text, at);
      const name = JSON.parse(text.slice(at, nameEnd));
      at = text.indexOf(':', nameEnd) + 1;
      walk(`${path}/${pointerStep(name)}`);
    }
  };
  const walkItems = (path: string): void => {
    for (let more = enter(']'), i = 0; more; more = next(), i++) walk(`${path}/${i}`);
  };
  /** Steps into a container; returns false if it is empty. */
  const enter = (close: string): boolean => {
    at++;
    skipSpace();
    if (text[at] !== close) return true;
    at++;
    return false;
  };
  /** Skips the comma or closing bracket after a value; returns false at the end of the container. */
  const next = (): boolean => {
    skipSpace();
    const more = text[at++] === ',';
    skipSpace();
    return more;
  };
  walk('');
  return leaves;
}

/** Formats a name as one step of a JSON Pointer (RFC 6901, section 3). */
export function pointerStep(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

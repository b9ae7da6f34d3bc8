import { endOfString } from './scan.ts';

/**
 * Returns the members of a JSON object, as a map from name to raw JSON text in the order written. `JSON.parse` loses
 * this order, because JavaScript objects move names such as `10` to the front. If a name is repeated, the last value
 * counts, at the position of the first.
 *
 * @throws SyntaxError if `text` is not one JSON object
 */
export function splitMembers(text: string): Map<string, string> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new SyntaxError('not a JSON object');
  return membersOf(text);
}

/** Returns the same as `splitMembers`, for a text that is known to be one JSON object. */
export function membersOf(text: string): Map<string, string> {
  // The text is valid JSON, so only quotes, brackets and commas matter.
  const members = new Map<string, string>();
  let at = text.indexOf('{') + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return members;
    const nameEnd = endOfString(text, quote);
    const valueStart = text.indexOf(':', nameEnd) + 1;
    const valueEnd = endOfValue(text, valueStart);
    members.set(JSON.parse(text.slice(quote, nameEnd)), text.slice(valueStart, valueEnd).trim());
    at = valueEnd + 1;
  }
}

/**
 * Returns the items of a JSON array as raw JSON text.
 *
 * @throws SyntaxError if `text` is not one JSON array
 */
export function splitItems(text: string): string[] {
  const value: unknown = JSON.parse(text);
  if (!Array.isArray(value)) throw new SyntaxError('not a JSON list');
  let at = text.indexOf('[') + 1;
  return value.map(() => {
    const end = endOfValue(text, at);
    const item = text.slice(at, end).trim();
    at = end + 1;
    return item;
  });
}

/** Returns the index of the `,` or closing bracket after the value that begins at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; ; at++) {
    const char = text[at];
    if (char === '"') {
      at = endOfString(text, at) - 1;
    } else if (char === '{' || char === '[') {
      depth++;
    } else if (char === ',' && depth === 0) {
      return at;
    } else if (char === '}' || char === ']') {
      if (depth === 0) return at;
      depth--;
    }
  }
}

/**
 * Returns the JSON text of an object with these names and raw JSON values. The members keep their order, even those
 * with names such as `10`.
 */
export function joinMembers(members: Iterable<readonly [name: string, json: string]>): string {
  let text = '';
  for (const [name, json] of members) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${json}`;
  return `{${text}}`;
}

/** Returns the JSON text of the members of an object, each with a comma before it. */
export function membersText(members: object): string {
  return Object.entries(members)
    .map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join('');
}

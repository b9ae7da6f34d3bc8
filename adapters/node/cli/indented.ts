import { splitItems, splitMembers } from '../../../lib/json/members.ts';

/**
 * Formats a JSON text as `JSON.stringify` with an indent of two spaces does, but keeps the order of all members and the
 * spelling of numbers: parsing it would move members that are named by numbers, such as "10". `indent` is put before
 * every line but the first.
 */
export function indented(json: string, indent = ''): string {
  const text = json.trim();
  const inner = `${indent}  `;
  const block = (open: string, parts: readonly string[], close: string) =>
    parts.length === 0 ? open + close : `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`;
  if (text.startsWith('{')) {
    const members = [...splitMembers(text)];
    return block(
      '{',
      members.map(([name, value]) => `${JSON.stringify(name)}: ${indented(value, inner)}`),
      '}',
    );
  }
  if (!text.startsWith('[')) return text;
  return block(
    '[',
    splitItems(text).map((item) => indented(item, inner)),
    ']',
  );
}

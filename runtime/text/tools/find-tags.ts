import type { Tags } from '../../../lib/grammar/tagged-object.ts';

/**
 * Finds the tags between which a template writes the arguments of a call, as Qwen3-Coder and Seed-OSS do:
 * `<parameter=city>`, the value, `</parameter>`. Returns null if it writes them in another form.
 *
 * @param rendered prompt of a conversation with one call
 * @param args the call's two arguments, which are strings
 */
export function findTags(rendered: string, args: Readonly<Record<string, string>>): Tags | null {
  const texts = Object.entries(args).flat();
  const places = texts.map((text) => rendered.lastIndexOf(text));
  if (places.includes(-1) || places.some((place, i) => i > 0 && place < (places[i - 1] ?? 0))) return null;
  const after = texts.map((text, i) => rendered.slice((places[i] ?? 0) + text.length, places[i + 1]));
  const [named = '', between = '', namedAgain, rest = ''] = after;
  // The last tag before an argument's name belongs to that argument.
  const openAt = between.lastIndexOf('<');
  const [close, open] = [between.slice(0, openAt), between.slice(openAt)];
  const closing = /^\s*<\/[^<>]+>\s*$/u.test(close) && close.includes('\n');
  const fits = closing && named === namedAgain && rest.startsWith(close) && rest.startsWith('</', close.length);
  return fits && named.includes('>') ? { open, named, close } : null;
}

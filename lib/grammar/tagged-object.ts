import type { Json, JsonSchema } from '../contract/answer-shape.ts';
import { pathTo } from '../param-path.ts';
import { canBeWritten } from './automaton/frame.ts';
import { compareBytes, type SortedTexts } from './automaton/literal-frame.ts';
import { Fuel } from './fuel.ts';
import { compileSchema } from './resolve/compile.ts';
import { orRefuse } from './resolve/matches.ts';
import { measureValues } from './resolve/measure.ts';
import type { Alternative, Member, Node } from './resolve/node.ts';
import { refuse, show } from './schema/problem.ts';
import { combine } from './text/combine.ts';
import { patternDfa } from './text/compile-string.ts';
import { escapePattern } from './text/pattern.ts';
import { StringLanguage } from './text/string-language.ts';

/**
 * Describes how an object is written with tags instead of as JSON. Each member is written as `open`, its name, `named`,
 * its value and `close`. Strings are written without quotes and escapes, other values as JSON. `close` contains a line
 * break, so JSON never contains it.
 */
export interface Tags {
  open: string;
  named: string;
  close: string;
}

/**
 * Describes a member that is written between tags. Its value has one or more of the forms `texts`, `languages` and
 * `json`.
 */
export interface TaggedMember {
  name: string;
  required: boolean;
  /** The text before the value, as a list with this one item. */
  begin: SortedTexts;
  /** The strings of an `enum` or `const`, in byte order; empty if there are none. */
  texts: SortedTexts;
  /** The languages of all other strings, without texts that contain the closing tag; empty if there are none. */
  languages: readonly StringLanguage[];
  /** The values that are written as JSON; null if there are none. */
  json: Node | null;
}

export interface TaggedObject {
  tags: Tags;
  members: readonly TaggedMember[];
  /** The text after each value, as a list with this one item. */
  close: SortedTexts;
}

const encoder = new TextEncoder();
/**
 * For each closing tag, the language of all texts without it. All schemas share these languages and so their token
 * masks.
 */
const anyText = new Map<string, StringLanguage>();

/**
 * Compiles the JSON Schema of an object that is written with tags. Undeclared members are never written.
 *
 * @param path path of the schema in the caller's input, for error messages
 * @throws AssayError the error of `compileSchema`; `unsupported_schema` also for a schema with alternatives at its
 *   root, for a member whose name contains a tag, and for a required member all of whose values contain the closing tag
 */
export function taggedObject(schema: JsonSchema, tags: Tags, path: string): TaggedObject {
  const [root, ...others] = compileSchema(schema, { path }).alternatives;
  if (root?.kind !== 'object' || others.length > 0) {
    refuse(
      path,
      'the loaded model writes the members one by one, so this must be one object, without alternatives (anyOf, oneOf, enum) at its root; move them into a property.',
    );
  }
  const members = root.members.filter(({ node }) => canBeWritten(node, 1));
  return {
    tags,
    members: members.flatMap((member) => taggedMember(member, tags, path) ?? []),
    close: [encoder.encode(tags.close)],
  };
}

function taggedMember({ name, node, required }: Member, tags: Tags, path: string): TaggedMember | null {
  const closing = closingTag(tags);
  const reserved = [tags.named, closing].find((tag) => name.includes(tag));
  if (reserved !== undefined)
    refuse(
      pathTo(pathTo(path, 'properties'), name),
      `the loaded model cannot write a name that contains ${show(reserved)}; use another name.`,
    );
  const languages = node.alternatives
    .flatMap((one) => (one.kind === 'string' ? without(one.language, closing, path) : []))
    .filter((language) => !language.empty);
  const literals = node.alternatives.flatMap((one) => (one.kind === 'literals' ? one.values : []));
  const texts = literals.filter((value): value is string => typeof value === 'string' && !value.includes(closing));
  const alternatives = node.alternatives.flatMap(withoutStrings);
  if (languages.length + texts.length + alternatives.length === 0) {
    if (required)
      refuse(
        pathTo(pathTo(path, 'properties'), name),
        `no value can be written, because all contain ${show(closing)}; use other values.`,
      );
    return null;
  }
  return {
    name,
    required,
    begin: [encoder.encode(tags.open + name + tags.named)],
    texts: texts.map((text) => encoder.encode(text)).sort(compareBytes),
    languages,
    json: alternatives.length > 0 ? { ...node, alternatives } : null,
  };
}

/** Returns the closing tag without the white space after it. */
function closingTag({ close }: Tags): string {
  return close.trimEnd();
}

function withoutStrings(alternative: Alternative): Alternative[] {
  if (alternative.kind === 'string') return [];
  if (alternative.kind !== 'literals') return [alternative];
  const values: Json[] = alternative.values.filter((value) => typeof value !== 'string');
  return values.length > 0 ? [{ ...alternative, values, ...measureValues(values) }] : [];
}

/** Returns a language without the texts that contain `tag`. */
function without(language: StringLanguage, tag: string, path: string): StringLanguage {
  const { dfa, min, max } = language;
  const free = !dfa && min === 0 && max === Number.POSITIVE_INFINITY;
  const known = free ? anyText.get(tag) : undefined;
  if (known) return known;
  const made = orRefuse(path, () => {
    const fuel = new Fuel();
    const containing = patternDfa(escapePattern(tag), fuel);
    return new StringLanguage(combine(dfa ?? patternDfa('', fuel), containing, 'minus', fuel), min, max, fuel);
  });
  // The map stays small: a process runs one model, whose template has one form of tags.
  if (free) anyText.set(tag, made);
  return made;
}

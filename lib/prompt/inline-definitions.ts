import type { Json, JsonSchema } from '../contract/answer-shape.ts';
import { LIMITS } from '../grammar/limits.ts';
import { holdingOf, isAnnotation, SHOWN_ANNOTATIONS } from '../grammar/schema/keywords.ts';
import { isObject } from '../json/property.ts';

/**
 * Returns an equivalent schema that takes fewer tokens in the prompt. Unused definitions are omitted, a definition that
 * is used once replaces its reference, and a definition that only refers to another is skipped. The result is never
 * longer. A schema is returned unchanged if it has a reference to anything but the root or a definition, or a part with
 * an `$id`, to which the references in it are relative.
 */
export function inlineDefinitions(schema: JsonSchema): JsonSchema {
  const { $defs, definitions: older, ...root } = schema;
  const definitions = { ...(isObject(older) ? older : {}), ...(isObject($defs) ? $defs : {}) };
  const nameIn = definitionFinder(definitions);
  const counted = countUses(root, definitions, nameIn);
  if (counted === null) return schema;
  const uses = counted;
  /** Definitions that are kept, in the order of their first use. */
  const kept = new Map<string, Json>();
  const waiting: string[] = [];

  function render(value: Json, depth: number): Json {
    if (!isObject(value)) return value;
    const { $ref, ...beside } = value;
    if ($ref === undefined || $ref === '#') return children(value, depth);
    const name = nameIn($ref)!;
    const definition = definitions[name]!;
    const fits = isObject(definition) && Object.keys(beside).every((keyword) => isAnnotation(keyword));
    if (fits && uses.get(name) === 1 && depth < LIMITS.schemaDepth) return render({ ...definition, ...beside }, depth);
    if (!kept.has(name)) waiting.push(name);
    kept.set(name, kept.get(name) ?? true);
    return { ...children(beside, depth), $ref: refTo(name) };
  }

  function children(value: JsonSchema, depth: number): JsonSchema {
    const said = Object.entries(value).filter(
      ([keyword]) => SHOWN_ANNOTATIONS.includes(keyword) || !isAnnotation(keyword),
    );
    const nested = (one: Json) => render(one, depth + 1);
    return Object.fromEntries(said.map(([keyword, member]) => [keyword, mapSchemas(keyword, member, nested)]));
  }

  // The cast is safe, because an object is rendered as an object.
  const rendered = render(root, 1) as JsonSchema;
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    kept.set(name, render(definitions[name]!, 1));
  }
  return kept.size === 0 ? rendered : { ...rendered, $defs: Object.fromEntries(kept) };
}

/**
 * Counts the references to each definition that the root reaches. Returns null if a reference leads to anything but the
 * root or a definition, or if a part has an `$id`.
 */
function countUses(
  root: JsonSchema,
  definitions: JsonSchema,
  nameIn: (ref: Json) => string | undefined,
): Map<string, number> | null {
  const uses = new Map<string, number>();
  const open: Json[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (!isObject(value)) continue;
    if (value !== root && (value.$id !== undefined || value.$anchor !== undefined)) return null;
    if (value.$ref !== undefined && value.$ref !== '#') {
      const name = nameIn(value.$ref);
      if (name === undefined) return null;
      if (!uses.has(name)) open.push(definitions[name]!);
      uses.set(name, (uses.get(name) ?? 0) + 1);
    }
    for (const [keyword, member] of Object.entries(value)) {
      mapSchemas(keyword, member, (one) => {
        open.push(one);
        return one;
      });
    }
  }
  return uses;
}

/**
 * Returns a function that finds the name of the definition that a reference leads to, following definitions that only
 * refer to another. It returns undefined for a reference to anything but a definition. Each definition is followed
 * once, because thousands of references may begin one chain of thousands of definitions.
 */
function definitionFinder(definitions: JsonSchema): (ref: Json) => string | undefined {
  const ends = new Map<string, string>();
  return (ref) => {
    const passed = new Set<string>();
    let found: string | undefined;
    for (let next: Json | undefined = ref; typeof next === 'string'; ) {
      // JSON Pointer as a URI fragment (RFC 6901, section 6).
      const token: string | undefined = /^#\/(?:\$defs|definitions)\/([^/]*)$/.exec(decodeURIComponent(next))?.[1];
      const name: string | undefined = token?.replaceAll('~1', '/').replaceAll('~0', '~');
      if (name === undefined || !Object.hasOwn(definitions, name) || passed.has(name)) break;
      passed.add(name);
      found = ends.get(name) ?? name;
      if (ends.has(name)) break;
      const definition: Json | undefined = definitions[name];
      next = isObject(definition) && Object.keys(definition).length === 1 ? definition.$ref : undefined;
    }
    if (found !== undefined) for (const name of passed) ends.set(name, found);
    return found;
  };
}

function refTo(name: string): string {
  return `#/$defs/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`;
}

/** Returns the value of a keyword with every schema directly in it replaced by the result of `map`. */
function mapSchemas(keyword: string, member: Json, map: (schema: Json) => Json): Json {
  const holds = holdingOf(keyword, member);
  if (holds === 'schema') return map(member);
  if (holds === 'schemas' && Array.isArray(member)) return member.map(map);
  if (holds === 'schema map' && isObject(member)) {
    return Object.fromEntries(Object.entries(member).map(([name, one]) => [name, map(one)]));
  }
  return member;
}

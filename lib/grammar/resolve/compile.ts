import type { JsonSchema } from '../../contract/answer-shape.ts';
import { isObject } from '../../json/property.ts';
import { pathTo } from '../../param-path.ts';
import { Fuel } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { parseSchema } from '../schema/parse.ts';
import { refuse, show } from '../schema/problem.ts';
import { orRefuse } from './matches.ts';
import { measure, measureValues } from './measure.ts';
import { type Alternative, itemAt, type Member, type Node } from './node.ts';
import { keepExactlyOne } from './one-of.ts';
import { Resolver } from './resolver.ts';

interface CompileOptions {
  /** Path of the schema in the caller's input, for error messages. */
  path: string;
  /**
   * Names of the properties that the answer has, in this order, all required; if absent, all properties of the schema.
   */
  keys?: readonly string[];
  /** Path of `keys` in the caller's input, for error messages; `path` by default. */
  keysPath?: string;
  /**
   * Compile budget that is shared with other schemas (`sharedFuel`); without it, only the schema's own limits apply.
   */
  fuel?: Fuel;
}

/**
 * Compiles a JSON Schema to the root node of its answers. Answers are objects, so a schema that also allows other
 * values is narrowed to objects.
 *
 * @throws AssayError `invalid_type` or `invalid_value` for a malformed schema, or `invalid_value` for `keys` that it
 *   does not have; `unsupported_schema` for a schema that cannot be enforced, that is too large, or that no answer
 *   satisfies
 */
export function compileSchema(schema: JsonSchema, { path, keys, keysPath, fuel }: CompileOptions): Node {
  const resolver = new Resolver(parseSchema(schema, path), new Fuel(LIMITS.steps, fuel));
  const found = resolver.node([0]);
  resolver.resolve();
  resolver.checkUnique();
  keepExactlyOne(resolver);
  // The root is a copy: a reference to it from deeper in the schema may allow values other than objects, and other
  // keys.
  const root: Node = { ...found, alternatives: [] };
  for (const alternative of found.alternatives) {
    // A schema without `type` whose keywords are about lists only, such as `items`, means a list.
    if (alternative.kind === 'object' && alternative.from.generated) root.alternatives.push(alternative);
    else if (alternative.kind === 'literals') {
      const values = alternative.values.filter(isObject);
      if (values.length > 0) root.alternatives.push({ ...alternative, values, ...measureValues(values) });
    }
  }
  if (root.alternatives.length === 0 && found.alternatives.length > 0) {
    refuse(path, 'must describe an object, because every answer is one; put it under a property.');
  }
  if (keys) selectKeys(root, keys, keysPath ?? path);
  measure([root, ...resolver.nodes], (steps) => resolver.spend(steps));
  if (root.size === Infinity) refuseEmpty(root, path);
  orRefuse(path, () => resolver.fuel.spend(LIMITS.stepsPerByte * root.size), 'this schema');
  return root;
}

/**
 * Refuses a schema that no answer satisfies. The message names the innermost part that has no value; the search follows
 * the first such required part downwards.
 */
function refuseEmpty(root: Node, path: string): never {
  const seen = new Set<Node>();
  let node: Node | undefined = root;
  let at = path;
  for (let below: Node | undefined = root; below && !seen.has(below); ) {
    node = below;
    seen.add(node);
    below = undefined;
    for (const alternative of node.alternatives) {
      if (alternative.kind === 'object') {
        const empty: Member | undefined = alternative.members.find((one) => one.required && one.node.size === Infinity);
        if (empty) {
          below = empty.node;
          at = pathTo(pathTo(at, 'properties'), empty.name);
          break;
        }
      } else if (alternative.kind === 'array' && alternative.min > 0 && alternative.min <= alternative.max) {
        below = Array.from({ length: Math.min(alternative.min, alternative.prefix.length + 1) }, (_, i) =>
          itemAt(alternative, i),
        ).find(({ size }) => size === Infinity);
        if (below) {
          at = pathTo(at, 'items');
          break;
        }
      }
    }
  }
  refuse(
    at,
    'no answer can satisfy this. Either its keywords contradict each other, or its shortest answer has more than ' +
      `${LIMITS.shortestAnswer} bytes or ${LIMITS.answerDepth} levels, or a number beyond 9007199254740991 or 15 digits; relax its keywords.`,
  );
}

/**
 * Narrows the root to alternatives that have exactly the properties `keys`, in this order, all required.
 *
 * @param path path of the keys in the caller's input, for errors
 * @throws AssayError `invalid_value` if the schema lacks one of the keys, or no alternative has all of them
 */
function selectKeys(root: Node, keys: readonly string[], path: string): void {
  const lists = root.alternatives.map(membersOf);
  for (const [i, key] of keys.entries()) {
    if (!lists.some((members) => members?.some(({ name }) => name === key))) {
      refuse(
        `${path}[${i}]`,
        `${show(key)} is not a property of the schema; use one of its properties.`,
        'invalid_value',
      );
    }
  }
  root.alternatives = root.alternatives.flatMap((alternative, i): Alternative[] => {
    const members = lists[i];
    const chosen = keys.map((key) => members?.find(({ name }) => name === key)).filter((one) => one !== undefined);
    if (alternative.kind !== 'object' || chosen.length < keys.length) return [];
    return [
      {
        ...alternative,
        members: chosen.map((one): Member => ({ ...one, required: true })),
        extras: [],
        min: 0,
        max: Infinity,
      },
    ];
  });
  if (root.alternatives.length === 0)
    refuse(path, 'no alternative of the schema has all of these properties; ask for fewer.', 'invalid_value');
}

function membersOf(alternative: Alternative): readonly Member[] | undefined {
  return alternative.kind === 'object' ? alternative.members : undefined;
}

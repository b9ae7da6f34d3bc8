import type * as v from 'valibot';
import { requestFuel } from '../grammar/fuel.ts';
import { type Check, compile } from './compile.ts';
import type { Node, OptionalNode } from './node.ts';
import { Walk } from './walk.ts';

/**
 * The value as its schema types it, defaults filled in.
 *
 * @throws AssayError with the first issue (open-points.md, part A, "Order of checks"): `unknown_field`, `missing_input` or
 * `conflicting_input`, then the codes of 422; each in the order of the document.
 */
export function validate<TSchema extends v.GenericSchema>(schema: TSchema, value: unknown): v.InferOutput<TSchema> {
  const { check, defaults } = compiled(schema as unknown as Node);
  const walk = new Walk();
  check(value, walk);
  if (!walk.issue) return { ...defaults, ...(value as object) };
  // Late rules are made when the request is put to use. As it never will be, they are asked now whether one of them comes first.
  const again = new Walk(requestFuel());
  check(value, again);
  throw again.issue ?? walk.issue;
}

interface Compiled {
  check: Check;
  /** Of the members of the root. */
  defaults: object;
}

const cache = new WeakMap<Node, Compiled>();

function compiled(schema: Node): Compiled {
  const known = cache.get(schema);
  if (known) return known;
  const made = { check: compile(schema), defaults: defaultsOf(schema) };
  cache.set(schema, made);
  return made;
}

function defaultsOf(schema: Node): object {
  if (schema.type !== 'strict_object' && schema.type !== 'object') return {};
  const members = Object.entries(schema.entries).filter(([, member]) => (member as OptionalNode).default !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, (member as OptionalNode).default]));
}

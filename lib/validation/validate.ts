import type * as v from 'valibot';
import { sharedFuel } from '../grammar/fuel.ts';
import { type Check, compile } from './compile.ts';
import type { Node, OptionalNode } from './node.ts';
import { Walk } from './walk.ts';

/**
 * Returns a valid request as a copy, with the defaults of its own fields (not of nested ones) filled in.
 *
 * @throws AssayError the first issue of an invalid request (docs/interface.md, D-15): first `unknown_field`,
 *   `missing_input` and `conflicting_input`, then invalid values; both groups in document order
 */
export function validate<TSchema extends v.GenericSchema>(schema: TSchema, value: unknown): v.InferOutput<TSchema> {
  // The cast is safe, because `Node` covers all kinds of schemas that requests use.
  const { check, defaults } = compiled(schema as unknown as Node);
  const walk = new Walk();
  check(value, walk);
  // Defaults exist for objects only, and the value has passed its schema.
  if (!walk.issue) return { ...defaults, ...(value as object) };
  // Late rules normally run when the handler uses the request. This request is refused, so they run now: one of their
  // issues may come first.
  const again = new Walk(sharedFuel());
  check(value, again);
  throw again.issue ?? walk.issue;
}

interface Compiled {
  check: Check;
  /** Default values of the root's members. */
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
  // The cast allows reading `default`, which members without one do not have.
  const members = Object.entries(schema.entries).filter(([, member]) => (member as OptionalNode).default !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, (member as OptionalNode).default]));
}

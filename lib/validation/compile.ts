import type * as v from 'valibot';
import { at } from '../at.ts';
import {
  type LeafNode,
  type ListNode,
  type Node,
  type ObjectNode,
  type OptionalNode,
  type RecordNode,
  schemaOf,
  type UnionNode,
  type Validation,
  type VariantNode,
  validationsOf,
} from './node.ts';
import type { Finding, LateRule, Rule } from './rules.ts';
import { unknownField } from './unknown-field.ts';
import type { Walk } from './walk.ts';
import { findingOf } from './wording.ts';

/**
 * Checks a value against one schema. Notes the first issue in `walk`. Throws an `AssayError` at once (`Walk.refuse`)
 * for an unknown field, or if the input of `exactlyOne` is missing or conflicting.
 */
export type Check = (value: unknown, walk: Walk) => void;

/**
 * Compiles a schema to a function that checks a value in document order. Valibot checks each single value but would
 * report issues in the order of the schema, so the walk is our own. An issue of a whole object or list (a missing
 * field, too few items, a rule across members) counts as at its end.
 */
export function compile(node: Node): Check {
  switch (node.type) {
    case 'strict_object':
    case 'object':
      return compileObject(node);
    case 'record':
      return compileRecord(node);
    case 'array':
      return compileList(node);
    case 'variant':
      return compileVariant(node);
    case 'union':
      return compileUnion(node);
    case 'exact_optional':
    case 'optional':
    case 'nullish':
    case 'nullable':
      return compileOptional(node);
    default:
      return compileLeaf(node);
  }
}

function compileObject(node: ObjectNode): Check {
  const members = new Map(Object.entries(node.entries).map(([name, member]) => [name, compile(member)]));
  const required = Object.keys(node.entries).filter((name) => isRequired(node.entries[name]!));
  const presence = validationsOf(node).filter(isPresenceRule);
  const validations = validationsOf(node).filter((validation) => !isPresenceRule(validation));
  const strict = node.type === 'strict_object';
  return (value, walk) => {
    if (!isObject(value)) return walk.note(NO_OBJECT);
    // A parsed JSON object has no inherited enumerable names, so `for in` is correct; it is also the fastest loop.
    for (const name in value) {
      const check = members.get(name);
      walk.enter(name);
      if (check) check(value[name], walk);
      else if (strict) walk.refuse(unknownField(name, Object.keys(node.entries)));
      walk.leave();
    }
    for (const rule of presence) {
      const finding = rule.find(value);
      if (finding) walk.refuse(finding);
    }
    if (walk.issue) return;
    const missing = required.find((name) => !Object.hasOwn(value, name));
    if (missing !== undefined) walk.note({ at: [missing], ...REQUIRED });
    runValidations(validations, value, walk);
  };
}

function compileRecord(node: RecordNode): Check {
  const member = compile(node.value);
  const validations = validationsOf(node);
  return (value, walk) => {
    if (!isObject(value)) return walk.note(NO_OBJECT);
    for (const name in value) {
      walk.enter(name);
      member(value[name], walk);
      walk.leave();
    }
    runValidations(validations, value, walk);
  };
}

function compileList(node: ListNode): Check {
  const item = compile(node.item);
  const validations = validationsOf(node);
  const soFar = validations.filter(({ type }) => type !== 'min_length');
  return (value, walk) => {
    if (!Array.isArray(value)) return walk.note(NO_LIST);
    for (let i = 0; i < value.length; i++) {
      const good = walk.issue === null;
      walk.enter(i);
      item(value[i], walk);
      walk.leave();
      if (good && walk.issue) preferEarlier(soFar, value.slice(0, i), walk);
    }
    runValidations(validations, value, walk);
  };
}

/**
 * Replaces the issue of an invalid item by that of a rule of the list, if the items before it already break the rule:
 * that issue is earlier in the document. `goodItems` are the valid items before the invalid one.
 */
function preferEarlier(validations: readonly Validation[], goodItems: unknown[], walk: Walk): void {
  const later = walk.issue;
  walk.issue = null;
  runValidations(validations, goodItems, walk);
  walk.issue ??= later;
}

function compileVariant({ key, options }: VariantNode): Check {
  const byKind = new Map(options.map((option) => [literalOf(option.entries[key]!), compile(option)]));
  const known = new Set(options.flatMap((option) => Object.keys(option.entries)));
  const strict = options.every(({ type }) => type === 'strict_object');
  const choices = [...byKind.keys()].map((kind) => JSON.stringify(kind)).join(', ');
  return (value, walk) => {
    if (!isObject(value)) return walk.note(NO_OBJECT);
    const kind = value[key];
    const check = byKind.get(kind);
    if (check) return check(value, walk);
    const stranger = strict ? Object.keys(value).find((name) => !known.has(name)) : undefined;
    if (stranger !== undefined) walk.refuse({ at: [stranger], ...unknownField(stranger, [...known]) });
    if (!Object.hasOwn(value, key)) return walk.note({ at: [key], ...REQUIRED });
    const code = typeof kind === 'string' ? 'invalid_value' : 'invalid_type';
    walk.note({ code, at: [key], message: `must be one of: ${choices}` });
  };
}

/** Compiles a union whose options have different JSON types: a string, a list, an object, true or false. */
function compileUnion(node: UnionNode): Check {
  const byKind = new Map(node.options.map((option) => [kindOf(option), compile(option)]));
  const validations = validationsOf(node);
  const kinds = [...byKind.keys()].map((kind) => KIND_NAMES[kind]).join(' or ');
  return (value, walk) => {
    const check = byKind.get(Array.isArray(value) ? 'list' : value === null ? 'null' : typeof value);
    if (!check) return walk.note({ code: 'invalid_type', message: `must be ${kinds}` });
    check(value, walk);
    runValidations(validations, value, walk);
  };
}

const KIND_NAMES: { readonly [kind: string]: string } = {
  string: 'a string',
  list: 'a list',
  object: 'an object',
  boolean: 'true or false',
};

function kindOf({ type }: Node): string {
  if (type === 'array') return 'list';
  // All picklists of this API contain only strings.
  if (type === 'picklist') return 'string';
  return type === 'string' || type === 'boolean' ? type : 'object';
}

function compileOptional(node: OptionalNode): Check {
  const check = compile(node.wrapped);
  if (node.type !== 'nullish' && node.type !== 'nullable') return check;
  return (value, walk) => {
    if (value !== null) check(value, walk);
  };
}

function compileLeaf(node: LeafNode): Check {
  // A `Node` is a Valibot schema; its type here has only the members that the walk reads.
  const validations = [schemaOf(node) as unknown as v.GenericSchema, ...validationsOf(node)];
  return (value, walk) => runValidations(validations, value, walk);
}

/**
 * Runs the checks in order and notes the first issue. Does nothing if an issue was already noted, because the earliest
 * counts.
 */
function runValidations(validations: readonly Validation[], value: unknown, walk: Walk): void {
  for (let i = 0; i < validations.length && walk.issue === null; i++) {
    const validation = at(validations, i);
    if (validation.type === 'late_rule') {
      // Only late rules have this `type`.
      if (walk.fuel) walk.issue = (validation as LateRule<unknown>).check(value, walk.path, walk.fuel);
    } else {
      const finding = 'find' in validation ? validation.find(value) : findingOf(validation, value);
      if (finding) walk.note(finding);
    }
  }
}

const REQUIRED: Finding = { code: 'missing_field', message: 'is required' };
const NO_OBJECT: Finding = { code: 'invalid_type', message: 'must be an object' };
const NO_LIST: Finding = { code: 'invalid_type', message: 'must be a list' };

function isPresenceRule(validation: Validation): validation is Rule<unknown> {
  return validation.type === 'presence';
}

function isRequired({ type }: Node): boolean {
  return type !== 'exact_optional' && type !== 'optional' && type !== 'nullish';
}

function literalOf(node: Node): unknown {
  // Only literal schemas have this `type`.
  if (node.type === 'literal') return (node as unknown as v.LiteralSchema<v.Literal, undefined>).literal;
  throw new Error('The options of a variant are told apart by literals.');
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

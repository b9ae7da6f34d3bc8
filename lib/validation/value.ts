import type { AssayError } from '../errors.ts';
import { issueAt } from './issue.ts';
import {
  alternativeOf,
  checksOf,
  isObject,
  isRequired,
  type JsonObject,
  type ListNode,
  memberOf,
  type Node,
  type ObjectNode,
  optionOf,
  type PipeItem,
  wrappedOf,
} from './node.ts';
import { pathTo } from './path.ts';
import type { Finding, LateRule } from './rules.ts';
import { findingOf } from './wording.ts';

/**
 * The first value that the schema refuses, in document order; what concerns an object or a list as a whole (a missing field, too
 * few items, a rule across members) counts at its end.
 */
export function valueIssue(node: Node, value: unknown, path: string): AssayError | null {
  switch (node.type) {
    case 'exact_optional':
    case 'optional':
    case 'nullish':
    case 'nullable': {
      const wrapped = wrappedOf(node, value);
      return wrapped && valueIssue(wrapped, value, path);
    }
    case 'object':
    case 'strict_object':
      if (!isObject(value)) return issueAt(path, NO_OBJECT);
      return inMembers(node, value, path) ?? brokenCheck(checksOf(node), value, path);
    case 'array':
      if (!Array.isArray(value)) break;
      return inList(node, value, path);
    case 'union': {
      const alternative = alternativeOf(node, value);
      if (!alternative) break;
      return valueIssue(alternative, value, path);
    }
    case 'variant': {
      if (!isObject(value)) return issueAt(path, NO_OBJECT);
      const option = optionOf(node, value);
      if (!option) break;
      return valueIssue(option, value, path);
    }
  }
  return brokenCheck([node], value, path);
}

function inMembers(node: ObjectNode, value: JsonObject, path: string): AssayError | null {
  for (const name of Object.keys(value)) {
    const member = memberOf(node, name);
    const issue = member ? valueIssue(member, value[name], pathTo(path, name)) : null;
    if (issue) return issue;
  }
  const missing = Object.keys(node.entries).find(
    (name) => isRequired(node.entries[name]!) && !Object.hasOwn(value, name),
  );
  return missing === undefined ? null : issueAt(pathTo(path, missing), REQUIRED);
}

/** Said here, as Valibot takes a list for an object without members. */
const NO_OBJECT: Finding = { code: 'invalid_type', message: 'must be an object' };

const REQUIRED: Finding = { code: 'missing_field', message: 'is required' };

/** Items before the first bad one are good, so what holds for a list so far (not its least length) is asked of them first. */
function inList(node: ListNode & Node, items: readonly unknown[], path: string): AssayError | null {
  const checks = checksOf(node);
  for (let i = 0; i < items.length; i++) {
    const issue = valueIssue(node.item, items[i], pathTo(path, i));
    if (!issue) continue;
    const soFar = checks.filter((check) => check.type !== 'min_length');
    return brokenCheck(soFar, items.slice(0, i), path) ?? issue;
  }
  return brokenCheck(checks, items, path);
}

/** The first of these schemas and checks that refuses the value. */
function brokenCheck(checks: readonly PipeItem[], value: unknown, path: string): AssayError | null {
  for (const check of checks) {
    const issue = 'judge' in check ? check.judge(value, path) : ask(check, value, path);
    if (issue) return issue;
  }
  return null;
}

function ask(check: Exclude<PipeItem, LateRule<unknown>>, value: unknown, path: string): AssayError | null {
  const found = 'find' in check ? check.find(value) : findingOf(check, value);
  return found && issueAt(path, found);
}

import type { AssayError } from '../errors.ts';
import { issueAt } from './issue.ts';
import {
  alternativeOf,
  checksOf,
  isObject,
  type JsonObject,
  memberOf,
  type Node,
  type ObjectNode,
  optionOf,
} from './node.ts';
import { pathTo } from './path.ts';
import type { Rule } from './rules.ts';

/**
 * The first field that the schema does not know, or the first rule of presence broken, in document order; what concerns an
 * object as a whole counts at its end. Values are not judged here: where one is of another type, there is nothing to look into.
 */
export function presenceIssue(node: Node, value: unknown, path: string): AssayError | null {
  switch (node.type) {
    case 'exact_optional':
    case 'optional':
    case 'nullish':
    case 'nullable':
      return presenceIssue(node.wrapped, value, path);
    case 'array':
      return Array.isArray(value) ? inItems(node.item, value, path) : null;
    case 'union': {
      const alternative = alternativeOf(node, value);
      return alternative ? presenceIssue(alternative, value, path) : null;
    }
    case 'variant': {
      if (!isObject(value)) return null;
      const option = optionOf(node, value);
      return option ? inMembers([option], value, path) : inMembers(node.options, value, path);
    }
    case 'object':
    case 'strict_object':
      return isObject(value) ? (inMembers([node], value, path) ?? brokenRule(node, value, path)) : null;
    default:
      return null;
  }
}

function inItems(item: Node, items: readonly unknown[], path: string): AssayError | null {
  for (let i = 0; i < items.length; i++) {
    const issue = presenceIssue(item, items[i], pathTo(path, i));
    if (issue) return issue;
  }
  return null;
}

/** With several options (the discriminator says none of them), a field is unknown when all of them lack it. */
function inMembers(options: readonly (ObjectNode & Node)[], value: JsonObject, path: string) {
  for (const name of Object.keys(value)) {
    const at = pathTo(path, name);
    const members = options.flatMap((option) => memberOf(option, name) ?? []);
    if (members.length === 0 && options.every((option) => option.type === 'strict_object')) {
      return issueAt(at, { code: 'unknown_field', message: 'is not a field of this request. Leave it out' });
    }
    const issue = members.length === 1 ? presenceIssue(members[0]!, value[name], at) : null;
    if (issue) return issue;
  }
  return null;
}

function brokenRule(node: Node, value: JsonObject, path: string): AssayError | null {
  for (const check of checksOf(node)) {
    const found = check.type === 'presence' ? (check as Rule<JsonObject>).find(value) : null;
    if (found) return issueAt(path, found);
  }
  return null;
}

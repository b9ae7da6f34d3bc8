import type * as v from 'valibot';
import type { LateRule, Rule } from './rules.ts';

/** The kinds of Valibot schema that a request is made of, as far as the two walks over it read them. */
export type Node = (ObjectNode | ListNode | VariantNode | UnionNode | OptionalNode | LeafNode) & {
  readonly pipe?: readonly PipeItem[];
};

export interface ObjectNode {
  /** Only the strict one refuses unknown fields. */
  readonly type: 'strict_object' | 'object';
  readonly entries: { readonly [name: string]: Node };
}
export interface ListNode {
  readonly type: 'array';
  readonly item: Node;
}
export interface VariantNode {
  readonly type: 'variant';
  readonly key: string;
  readonly options: readonly (ObjectNode & Node)[];
}
export interface UnionNode {
  readonly type: 'union';
  readonly options: readonly Node[];
}
export interface OptionalNode {
  readonly type: 'exact_optional' | 'optional' | 'nullish' | 'nullable';
  readonly wrapped: Node;
}
export interface LeafNode {
  readonly type: 'string' | 'number' | 'boolean' | 'literal' | 'picklist' | 'custom' | 'unknown';
}

export type PipeItem = Node | Rule<unknown> | LateRule<unknown> | v.GenericPipeAction;

export type JsonObject = { readonly [name: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema of a member, if it is one; `constructor` and other names of the prototype are none. */
export function memberOf(node: ObjectNode, name: string): Node | undefined {
  return Object.hasOwn(node.entries, name) ? node.entries[name] : undefined;
}

/** The option of a variant that the value's discriminator names. */
export function optionOf(node: VariantNode, value: JsonObject): (ObjectNode & Node) | undefined {
  return node.options.find((option) => accepts(option.entries[node.key]!, value[node.key]));
}

/** The option of a union that takes this kind of JSON value. */
export function alternativeOf(node: UnionNode, value: unknown): Node | undefined {
  return node.options.find((option) => (option.type === 'array' ? Array.isArray(value) : option.type === typeof value));
}

function accepts(node: Node, value: unknown): boolean {
  return !(node as unknown as v.GenericSchema)['~run']({ value }, {}).issues;
}

/** What an optional schema wraps, where there is something to look into; null where it takes `null`. */
export function wrappedOf(node: OptionalNode, value: unknown): Node | null {
  return value === null && (node.type === 'nullish' || node.type === 'nullable') ? null : node.wrapped;
}

export function isRequired(node: Node): boolean {
  return node.type !== 'exact_optional' && node.type !== 'optional' && node.type !== 'nullish';
}

/** What is piped behind a schema: bounds and rules, those of pipes inside pipes too. */
export function checksOf(node: Node): readonly PipeItem[] {
  return (node.pipe ?? []).flatMap((item, i) => {
    if ('pipe' in item) return checksOf(item as Node);
    return i === 0 || ('kind' in item && item.kind === 'metadata') ? [] : [item];
  });
}

import type * as v from 'valibot';
import type { LateRule, Rule } from './rules.ts';

/** Represents a Valibot schema of a kind that requests use, with only the members that the walk reads. */
export type Node = ObjectNode | RecordNode | ListNode | VariantNode | UnionNode | OptionalNode | LeafNode;

interface Piped {
  readonly pipe?: readonly (Node | Validation | v.GenericMetadata)[];
}
export interface ObjectNode extends Piped {
  /** `strict_object` refuses unknown fields; `object` ignores them. */
  readonly type: 'strict_object' | 'object';
  readonly entries: { readonly [name: string]: Node };
}
/** Describes an object whose member names the caller chooses. */
export interface RecordNode extends Piped {
  readonly type: 'record';
  readonly value: Node;
}
export interface ListNode extends Piped {
  readonly type: 'array';
  readonly item: Node;
}
export interface VariantNode extends Piped {
  readonly type: 'variant';
  readonly key: string;
  readonly options: readonly ObjectNode[];
}
export interface UnionNode extends Piped {
  readonly type: 'union';
  readonly options: readonly Node[];
}
export interface OptionalNode extends Piped {
  readonly type: 'exact_optional' | 'optional' | 'nullish' | 'nullable';
  readonly wrapped: Node;
  readonly default: unknown;
}
export interface LeafNode extends Piped {
  readonly type: 'string' | 'number' | 'boolean' | 'literal' | 'picklist' | 'custom' | 'unknown';
}

/** Represents a check of a whole value: the schema of a leaf, or a validation piped after a schema. */
export type Validation = v.GenericValidation | v.GenericSchema | Rule<unknown> | LateRule<unknown>;

/** Returns the validations (bounds and rules) that are piped after a schema, with those of nested pipes, in order. */
export function validationsOf(node: Node): Validation[] {
  return (node.pipe ?? []).flatMap((item, i) => {
    // The cast is safe, because only schemas have a pipe.
    if ('pipe' in item) return validationsOf(item as Node);
    // The cast is safe, because all other items of a pipe are validations.
    return i === 0 || ('kind' in item && item.kind === 'metadata') ? [] : [item as Validation];
  });
}

/** Returns the schema that the pipe of a node begins with; the node itself if it has no pipe. */
export function schemaOf(node: Node): Node {
  // The first item of a pipe is its schema.
  const first = node.pipe?.[0] as Node | undefined;
  return first ? schemaOf(first) : node;
}

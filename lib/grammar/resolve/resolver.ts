import type { Json } from '../../answer-shape.ts';
import { at } from '../../at.ts';
import type { Fuel } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { NumberLanguage, type NumberRules } from '../number/number-language.ts';
import type { SchemaDocument, Subschema } from '../schema/document.ts';
import { refuse } from '../schema/problem.ts';
import { type Leaf, leaves } from './leaves.ts';
import { canonical, type MatchContext, matches } from './matches.ts';
import { measureValues } from './measure.ts';
import { mergeNumbers, mergeStrings, mergeTypes } from './merge.ts';
import type { Alternative, ArrayAlternative, Member, Node, ObjectAlternative, Origin } from './node.ts';
import { orRefuse } from './or-refuse.ts';
import { StringLanguages } from './string-languages.ts';

/**
 * Turns the subschemas of a document into nodes. The subschemas that must hold for the same value form one node, and
 * equal sets of them share it. A recursive schema therefore becomes a cycle of nodes.
 */
export class Resolver implements MatchContext {
  readonly document: SchemaDocument;
  /** Compile budget. */
  readonly fuel: Fuel;
  readonly nodes: Node[] = [];
  readonly strings: StringLanguages;
  private readonly known = new Map<string, Node>();
  private readonly numberLanguages = new Map<string, NumberLanguage>();
  private readonly lists = new Map<readonly Json[], ReadonlySet<string>>();

  constructor(document: SchemaDocument, fuel: Fuel) {
    this.document = document;
    this.fuel = fuel;
    this.strings = new StringLanguages(this.path([0]), fuel);
    orRefuse(this.path([0]), () => fuel.spend(LIMITS.stepsPerValue * document.values), 'this schema');
  }

  /**
   * Returns the node of a set of subschemas, by their indices; `resolve` fills in its alternatives. Throws
   * `unsupported_schema` if the schema has more than `LIMITS.nodes` nodes.
   */
  node(ids: readonly number[]): Node {
    const sorted = [...new Set(ids)].sort((a, b) => a - b);
    const key = sorted.join();
    let node = this.known.get(key);
    if (!node) {
      if (this.nodes.length >= LIMITS.nodes) {
        refuse(this.path(sorted), `this schema has more than ${LIMITS.nodes} different parts; make it smaller.`);
      }
      node = { ids: sorted, alternatives: [], height: Infinity, size: Infinity };
      this.known.set(key, node);
      this.nodes.push(node);
    }
    return node;
  }

  /**
   * Computes the alternatives of all requested nodes, and of the nodes that these refer to. Throws `unsupported_schema`
   * if the schema is too large, has an unsupported pattern or takes too many steps; `invalid_value` for an invalid
   * pattern.
   */
  resolve(): void {
    // `this.nodes` grows during this loop.
    for (let i = 0; i < this.nodes.length; i++) {
      const node = at(this.nodes, i);
      const found = leaves(node.ids, this.document, (steps) => this.spend(steps));
      for (const id of new Set(found.flatMap(({ exclusions }) => exclusions))) this.node([id]);
      const texts = new Set<string>();
      node.alternatives = found.flatMap((leaf) => this.alternatives(node, leaf, texts));
    }
  }

  /** Returns the path of the first of these subschemas in the caller's input; that of the root for none. */
  path(ids: readonly number[]): string {
    return at(this.document.subschemas, ids[0] ?? 0).path;
  }

  /** Spends resolving steps of the compile budget (`Fuel.resolve`). Throws `unsupported_schema` once it is used up. */
  spend(steps: number): void {
    orRefuse(this.path([0]), () => this.fuel.resolve(steps), 'this schema');
  }

  holds(list: readonly Json[], value: Json): boolean {
    let set = this.lists.get(list);
    if (!set) {
      set = new Set(list.map((one) => this.canonical(one)));
      this.lists.set(list, set);
    }
    return set.has(this.canonical(value));
  }

  private canonical(value: Json): string {
    const text = canonical(value);
    this.spend(text.length >> 5);
    return text;
  }

  textFits(text: string, schema: Subschema): boolean {
    return this.strings.fits(text, schema);
  }

  /**
   * Returns the alternatives that one leaf allows.
   *
   * @param texts JSON texts of the literals that the node already generates; new ones are added
   */
  private alternatives(node: Node, leaf: Leaf, texts: Set<string>): Alternative[] {
    const constraints = leaf.constraints.map((id) => at(this.document.subschemas, id));
    const make = (shape: object, generated: boolean): Alternative => {
      const from: Origin = { constraints: leaf.constraints, exclusions: leaf.exclusions, generated };
      // The cast is safe, because the callers pass the members of one kind of alternative.
      return { height: Infinity, size: Infinity, from, ...shape } as Alternative;
    };
    const literals = (values: readonly Json[], generated: boolean): Alternative[] => {
      const fresh = values.filter((value) => {
        const text = this.canonical(value);
        if (texts.has(text) || !node.ids.every((id) => matches(value, id, this))) return false;
        // A literal that is not generated must not keep a later alternative from generating it.
        if (generated) texts.add(text);
        return true;
      });
      return fresh.length > 0 ? [make({ kind: 'literals', values: fresh, ...measureValues(fresh) }, generated)] : [];
    };
    const list = constraints.find(({ values }) => values.length > 0)?.values[0];
    if (list) return literals(list, true);
    const types = mergeTypes(constraints);
    const found: Alternative[] = [];
    for (const type of types.allowed) {
      const generated = types.generated.has(type);
      if (type === 'null') found.push(...literals([null], generated));
      else if (type === 'boolean') found.push(...literals([true, false], generated));
      else if (type === 'string') {
        const rules = mergeStrings(constraints);
        found.push(make({ kind: 'string', rules, language: this.strings.language(rules, constraints) }, generated));
      } else if (type === 'number') {
        const rules = mergeNumbers(constraints, types.integer);
        found.push(make({ kind: 'number', rules, language: this.numbers(rules, leaf.constraints) }, generated));
      } else if (type === 'object') found.push(make(this.object(constraints), generated));
      else found.push(make(this.array(constraints), generated));
    }
    return found;
  }

  private object(constraints: readonly Subschema[]): ObjectAlternative {
    const names = new Set(constraints.flatMap(({ properties }) => [...properties.keys()]));
    const required = new Set(constraints.flatMap((schema) => schema.required));
    const declared = names.size;
    for (const name of required) names.add(name);
    this.spend(names.size * constraints.length);
    const members = [...names].map((name): Member => {
      const ids = constraints.map(
        ({ properties, additionalProperties }) => properties.get(name) ?? additionalProperties,
      );
      return { name, node: this.node(defined(ids)), required: required.has(name) };
    });
    const others = defined(constraints.map(({ additionalProperties }) => additionalProperties));
    const closed = others.some((id) => at(this.document.subschemas, id).nothing);
    if (closed) return { kind: 'object', members, extra: null, others: 'nothing' };
    // If the schema has no rule for undeclared members, they are written only if it declares no member at all.
    if (others.length === 0 && (declared > 0 || required.size > 0)) {
      return { kind: 'object', members, extra: null, others: 'any' };
    }
    const extra = this.node(others);
    return { kind: 'object', members, extra, others: extra };
  }

  private array(constraints: readonly Subschema[]): ArrayAlternative {
    const item = (i: number) =>
      this.node(defined(constraints.map(({ prefixItems, items }) => prefixItems[i] ?? items)));
    const length = Math.max(0, ...constraints.map(({ prefixItems }) => prefixItems.length));
    this.spend(length * constraints.length);
    const prefix = Array.from({ length }, (_, i) => item(i));
    const items = defined(constraints.map((schema) => schema.items));
    const min = Math.max(0, ...constraints.map(({ minItems }) => minItems ?? 0));
    const closed = items.some((id) => at(this.document.subschemas, id).nothing);
    const allowed = Math.min(closed ? length : Infinity, ...constraints.map(({ maxItems }) => maxItems ?? Infinity));
    // Items for which the schema has no rule are generated only as far as `minItems` requires them.
    const max = items.length === 0 && length > 0 ? Math.min(allowed, Math.max(min, length)) : allowed;
    return { kind: 'array', prefix, rest: this.node(items), min, max, allowed };
  }

  /**
   * Returns the set of numbers that satisfy merged rules. Throws `unsupported_schema` if checking them would cost too
   * much.
   *
   * @param constraints indices of the subschemas with the rules; the error names the first
   * @param except rules of the branches whose numbers `oneOf` excludes
   */
  numbers(rules: NumberRules, constraints: readonly number[], except: readonly NumberRules[] = []): NumberLanguage {
    if (rules.multipleOf.length > LIMITS.multiples) {
      refuse(
        this.path(constraints),
        `more than ${LIMITS.multiples} different multipleOf hold here; give their least common multiple instead.`,
      );
    }
    // Equal rules share a language, so that a token mask walks over the vocabulary once for all of them.
    const key = JSON.stringify([rules, except]);
    let language = this.numberLanguages.get(key);
    if (!language) {
      const make = () => new NumberLanguage(rules, except, (steps) => this.fuel.resolve(steps));
      language = orRefuse(this.path(constraints), make, 'this number');
      this.numberLanguages.set(key, language);
    }
    return language;
  }
}

function defined(ids: readonly (number | undefined)[]): number[] {
  return ids.filter((id) => id !== undefined);
}

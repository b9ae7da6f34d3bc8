import { at } from '../../at.ts';
import type { Json } from '../../contract/answer-shape.ts';
import { Fuel } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { NumberLanguage, type NumberRules } from '../number/number-language.ts';
import type { SchemaDocument, Subschema } from '../schema/document.ts';
import { refuse } from '../schema/problem.ts';
import { combine, lengthDfa } from '../text/combine.ts';
import { accepts } from '../text/dfa.ts';
import { StringLanguage } from '../text/string-language.ts';
import { leaves, type SchemaLeaf } from './leaves.ts';
import { canonical, type MatchContext, matches, memberSchemas, orRefuse } from './matches.ts';
import { measureValues } from './measure.ts';
import { mergeNumbers, mergeStrings, mergeTypes } from './merge.ts';
import type { Alternative, ArrayAlternative, Member, Node, ObjectAlternative, Origin } from './node.ts';
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
  readonly #known = new Map<string, Node>();
  readonly #settled = new Set<Node>();
  readonly #numberLanguages = new Map<string, NumberLanguage>();
  /** The items of lists with `uniqueItems`, each with the path of that keyword's schema. */
  readonly #uniques: { node: Node; path: string }[] = [];
  readonly #lists = new Map<readonly Json[], ReadonlySet<string>>();

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
    let node = this.#known.get(key);
    if (!node) {
      if (this.nodes.length >= LIMITS.nodes) {
        refuse(this.path(sorted), `this schema has more than ${LIMITS.nodes} different parts; make it smaller.`);
      }
      node = { ids: sorted, alternatives: [], height: Infinity, size: Infinity };
      this.#known.set(key, node);
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
    for (let i = 0; i < this.nodes.length; i++) this.#settle(at(this.nodes, i));
  }

  /**
   * Throws `unsupported_schema` for items that `uniqueItems` cannot keep apart. Called after `resolve`.
   */
  checkUnique(): void {
    for (const { node, path } of this.#uniques) {
      if (node.alternatives.some((one) => one.from.generated && (one.kind === 'object' || one.kind === 'array'))) {
        refuse(path, 'uniqueItems can be enforced only for strings, numbers and constants; remove it.');
      }
    }
  }

  /** Computes the alternatives of one node, once. */
  #settle(node: Node): void {
    if (this.#settled.has(node)) return;
    this.#settled.add(node);
    const found = leaves(node.ids, this.document, (steps) => this.spend(steps));
    for (const id of new Set(found.flatMap(({ exclusions }) => exclusions))) this.node([id]);
    const texts = new Set<string>();
    node.alternatives = found.flatMap((leaf) => this.#alternatives(node, leaf, texts));
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
    let set = this.#lists.get(list);
    if (!set) {
      set = new Set(list.map((one) => this.#canonical(one)));
      this.#lists.set(list, set);
    }
    return set.has(this.#canonical(value));
  }

  #canonical(value: Json): string {
    const text = canonical(value);
    this.spend(text.length >> 5);
    return text;
  }

  nameFits(name: string, pattern: string, schema: Subschema): boolean {
    return accepts(this.strings.pattern(pattern, schema.path), name);
  }

  textFits(text: string, schema: Subschema): boolean {
    return this.strings.fits(text, schema);
  }

  /**
   * Returns the alternatives that one leaf allows.
   *
   * @param texts JSON texts of the literals that the node already generates; new ones are added
   */
  #alternatives(node: Node, leaf: SchemaLeaf, texts: Set<string>): Alternative[] {
    const constraints = leaf.constraints.map((id) => at(this.document.subschemas, id));
    const make = (shape: object, generated: boolean): Alternative => {
      const from: Origin = { constraints: leaf.constraints, exclusions: leaf.exclusions, generated };
      // The cast is safe, because the callers pass the members of one kind of alternative.
      return { height: Infinity, size: Infinity, from, ...shape } as Alternative;
    };
    const literals = (values: readonly Json[], generated: boolean): Alternative[] => {
      const fresh = values.filter((value) => {
        const text = this.#canonical(value);
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
      } else if (type === 'object') found.push(make(this.#object(constraints), generated));
      else found.push(make(this.#array(constraints), generated));
    }
    return found;
  }

  #object(constraints: readonly Subschema[]): ObjectAlternative {
    const allowed = this.#names(constraints);
    const declared = new Set(constraints.flatMap(({ properties }) => [...properties.keys()]));
    const required = new Set(constraints.flatMap((schema) => schema.required));
    const patterns = [...new Set(constraints.flatMap(({ patternProperties }) => [...patternProperties.keys()]))];
    const min = Math.max(0, ...constraints.map(({ minProperties }) => minProperties ?? 0));
    const max = Math.min(Infinity, ...constraints.map(({ maxProperties }) => maxProperties ?? Infinity));
    // If the schema has no rule for undeclared members, they are written only if it says nothing about any member.
    const free = declared.size + required.size + patterns.length === 0;
    const generated = (ids: readonly number[]) =>
      (ids.length > 0 || free) && !ids.some((id) => at(this.document.subschemas, id).nothing);

    const names = new Set([...declared, ...required]);
    this.spend(names.size * constraints.length);
    for (const name of allowed.listed) {
      if (generated(this.#member(name, constraints))) names.add(name);
    }
    const members: Member[] = [];
    let possible = true;
    for (const name of names) {
      const isRequired = required.has(name);
      if (!allowed.has(name)) possible &&= !isRequired;
      else members.push({ name, node: this.node(this.#member(name, constraints)), required: isRequired });
    }
    const rules = { members, min, max: possible ? max : -1 };
    const extras = this.#undeclared(constraints, patterns, allowed.language).flatMap(({ names, ids }) =>
      generated(ids) ? [{ names, node: this.node(ids) }] : [],
    );
    const byName = patterns.length > 0 || constraints.some(({ has }) => has.has('unevaluatedProperties'));
    if (byName) return { kind: 'object', ...rules, extras, others: 'any' };
    if (!allowed.language) return { kind: 'object', ...rules, extras: [], others: 'nothing' };
    const others = defined(constraints.map(({ additionalProperties }) => additionalProperties));
    if (others.some((id) => at(this.document.subschemas, id).nothing)) {
      return { kind: 'object', ...rules, extras: [], others: 'nothing' };
    }
    return { kind: 'object', ...rules, extras, others: others.length === 0 && !free ? 'any' : this.node(others) };
  }

  /** Returns the indices of all subschemas that hold for the member with this name in an object. */
  #member(name: string, constraints: readonly Subschema[]): number[] {
    const found = constraints.map((schema) => memberSchemas(name, schema, this));
    const rest = constraints.flatMap(({ unevaluatedProperties: id }, i) => {
      if (id === undefined) return [];
      const inside = this.#inPlace(at(constraints, i), constraints);
      return constraints.some((one, j) => inside.has(one) && at(found, j).length > 0) ? [] : [id];
    });
    return [...found.flat(), ...rest];
  }

  /** Returns those of `constraints` that a subschema applies to its value: itself and what it refers to in place. */
  #inPlace(schema: Subschema, constraints: readonly Subschema[]): Set<Subschema> {
    const inside = new Set([schema]);
    for (const one of inside) {
      const next = [
        ...(one.ref === undefined ? [] : [one.ref]),
        ...one.allOf,
        ...(one.anyOf ?? []),
        ...(one.oneOf ?? []),
      ];
      this.spend(1 + next.length);
      for (const id of next) {
        const other = at(this.document.subschemas, id);
        if (constraints.includes(other)) inside.add(other);
      }
    }
    return inside;
  }

  /**
   * Returns the names that `propertyNames` allows: those that it lists, and a language of others, which is null if
   * there are none. Throws `unsupported_schema` for names that are neither a list nor one set of strings.
   */
  #names(constraints: readonly Subschema[]): AllowedNames {
    const ids = defined(constraints.map(({ propertyNames }) => propertyNames));
    if (ids.length === 0) return ANY_NAME;
    const node = this.node(ids);
    this.#settle(node);
    const listed: string[] = [];
    const languages: StringLanguage[] = [];
    for (const one of node.alternatives) {
      if (one.from.exclusions.length > 0)
        refuse(this.path(ids), 'oneOf is not supported for names; use anyOf or enum.');
      if (one.kind === 'string') languages.push(one.language);
      if (one.kind === 'literals') listed.push(...one.values.filter((value) => typeof value === 'string'));
    }
    const [language, ...more] = languages;
    if (more.length > 0) refuse(this.path(ids), 'several patterns for names are not supported; write them as one.');
    const isText = (name: string) => listed.includes(name) || (language?.has(name) ?? false);
    return { listed, has: isText, language: language ?? null };
  }

  /**
   * Returns the sets of undeclared names that different subschemas apply to, with the indices of these: one for each
   * combination of patterns that a name can match.
   */
  #undeclared(
    constraints: readonly Subschema[],
    patterns: readonly string[],
    allowed: StringLanguage | null,
  ): { names: StringLanguage; ids: number[] }[] {
    if (!allowed) return [];
    const path = constraints.find(({ patternProperties }) => patternProperties.size > 0)?.path ?? this.path([0]);
    if (patterns.length > MOST_NAME_PATTERNS) {
      refuse(path, `more than ${MOST_NAME_PATTERNS} patternProperties hold here; use fewer.`);
    }
    const { fuel } = this;
    const [min, max] = [Math.max(1, allowed.min), Math.min(LONGEST_NAME, allowed.max)];
    return orRefuse(path, () =>
      Array.from({ length: 2 ** patterns.length }, (_, bits) => {
        let { dfa } = allowed;
        for (const [i, pattern] of patterns.entries()) {
          const matching = this.strings.pattern(pattern, path);
          const one = (bits >> i) & 1;
          dfa = combine(dfa ?? lengthDfa(0, Infinity, fuel), matching, one ? 'and' : 'minus', fuel);
        }
        return { bits, names: dfa ? new StringLanguage(dfa, min, max, fuel) : anyName(min, max) };
      }).flatMap(({ names }) => {
        const [example] = names.words();
        // Which subschemas apply depends on the patterns alone, so any name of the set shows it.
        return example === undefined ? [] : [{ names, ids: this.#undeclaredMember(example, constraints) }];
      }),
    );
  }

  /** Returns what `member` returns for a name like this that no schema declares. */
  #undeclaredMember(name: string, constraints: readonly Subschema[]): number[] {
    return this.#member(
      name,
      constraints.map((schema) => (schema.properties.has(name) ? { ...schema, properties: new Map() } : schema)),
    );
  }

  #array(constraints: readonly Subschema[]): ArrayAlternative {
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
    const rest = this.node(items);
    // Checked only where it says something: a list of at most one item never has equal ones.
    const demanding = max > 1 ? constraints.find(({ uniqueItems }) => uniqueItems) : undefined;
    if (!demanding) return { kind: 'array', prefix, rest, min, max, allowed, unique: false };
    if (length > 0)
      refuse(demanding.path, 'uniqueItems beside schemas for the first items is not supported; remove one.');
    if (min > MOST_UNIQUE_ITEMS)
      refuse(demanding.path, `uniqueItems with more than ${MOST_UNIQUE_ITEMS} items is not supported.`);
    this.#uniques.push({ node: rest, path: demanding.path });
    return { kind: 'array', prefix, rest, min, max: Math.min(max, MOST_UNIQUE_ITEMS), allowed, unique: true };
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
    let language = this.#numberLanguages.get(key);
    if (!language) {
      const make = () => new NumberLanguage(rules, except, (steps) => this.fuel.resolve(steps));
      language = orRefuse(this.path(constraints), make, 'this number');
      this.#numberLanguages.set(key, language);
    }
    return language;
  }
}

/** Describes the names that an object's members may have. */
interface AllowedNames {
  /** The names that `propertyNames` lists. */
  listed: readonly string[];
  has(name: string): boolean;
  /** All other allowed names; null if there are none. */
  language: StringLanguage | null;
}

/** Maximum length of an undeclared name in characters. */
const LONGEST_NAME = 64;
const ANY_TEXT = new StringLanguage(null, 0, Infinity, new Fuel());
const ANY_NAME: AllowedNames = { listed: [], has: () => true, language: ANY_TEXT };
/** Maximum number of patterns of `patternProperties` that hold for one object. */
const MOST_NAME_PATTERNS = 4;
/** Maximum number of items that are generated for a list with `uniqueItems`. */
const MOST_UNIQUE_ITEMS = 256;

const anyNames = new Map<string, StringLanguage>();

/** Returns the language of all names of these lengths. Objects share it, and with it its token masks. */
function anyName(min: number, max: number): StringLanguage {
  const key = `${min},${max}`;
  const language = anyNames.get(key) ?? new StringLanguage(null, min, max, new Fuel());
  anyNames.set(key, language);
  return language;
}

/** The names that undeclared members may have without further rules. */
export const MEMBER_NAME = anyName(1, LONGEST_NAME);

function defined(ids: readonly (number | undefined)[]): number[] {
  return ids.filter((id) => id !== undefined);
}

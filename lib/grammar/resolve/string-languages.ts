import { pathTo } from '../../param-path.ts';
import type { Fuel } from '../fuel.ts';
import type { Subschema } from '../schema/document.ts';
import { refuse, show } from '../schema/problem.ts';
import { patternDfa, type StringRules, stringLanguage } from '../text/compile-string.ts';
import type { Dfa } from '../text/dfa.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { orRefuse } from './matches.ts';
import { mergeStrings } from './merge.ts';

/** Selects the texts of a string language: those that are generated, or all valid ones (`stringLanguage`). */
type Side = 'generates' | 'accepts';

/** Compiles the string rules of one schema. Each pattern and each set of rules is compiled once and cached. */
export class StringLanguages {
  readonly #schemaPath: string;
  readonly #fuel: Fuel;
  readonly #patterns = new Map<string, Dfa>();
  readonly #byRules = new Map<string, StringLanguage>();
  readonly #bySubschema = {
    generates: new Map<Subschema, StringLanguage>(),
    accepts: new Map<Subschema, StringLanguage>(),
  };

  /**
   * @param schemaPath path of the whole schema, for errors of rules that have no path of their own
   * @param fuel compile budget
   */
  constructor(schemaPath: string, fuel: Fuel) {
    this.#schemaPath = schemaPath;
    this.#fuel = fuel;
  }

  /**
   * Returns the language of the strings that satisfy merged rules. Throws `invalid_value` for an invalid pattern and
   * `unsupported_schema` for one that is not supported, or rules that are too large to compile.
   *
   * @param constraints subschemas that the rules were merged from; the error names one of them
   */
  language(rules: StringRules, constraints: readonly Subschema[], side: Side = 'generates'): StringLanguage {
    const key = JSON.stringify([side, rules, String(rules.max)]);
    let language = this.#byRules.get(key);
    if (!language) {
      for (const { pattern, path } of constraints) if (pattern !== undefined) this.pattern(pattern, path);
      const path = constraints.find(({ has }) =>
        ['pattern', 'format', 'minLength'].some((keyword) => has.has(keyword)),
      )?.path;
      language = orRefuse(path ?? this.#schemaPath, () =>
        stringLanguage(rules, side, this.#fuel, (pattern) => this.#patterns.get(pattern)!),
      );
      this.#byRules.set(key, language);
    }
    return language;
  }

  /**
   * Tells whether a text satisfies the `pattern` and `format` of a subschema. Throws `unsupported_schema` for a text
   * that only some validators accept for its format.
   */
  fits(text: string, schema: Subschema): boolean {
    if (schema.pattern === undefined && schema.format === undefined) return true;
    orRefuse(this.#schemaPath, () => this.#fuel.resolve(text.length >> 2), 'this schema');
    if (this.#anyLength(schema, 'generates').has(text)) return true;
    if (schema.format !== undefined && this.#anyLength(schema, 'accepts').has(text)) {
      refuse(
        schema.path,
        `validators disagree whether ${show(text)} is a valid ${schema.format}; remove the value or the format.`,
      );
    }
    return false;
  }

  /** Returns the language of the texts of any length that satisfy a subschema's own `pattern` and `format`. */
  #anyLength(schema: Subschema, side: Side): StringLanguage {
    const known = this.#bySubschema[side].get(schema);
    if (known) return known;
    const language = this.language({ ...mergeStrings([schema]), min: 0, max: Infinity }, [schema], side);
    this.#bySubschema[side].set(schema, language);
    return language;
  }

  /**
   * Returns the automaton of a pattern in the subschema at `path`. Throws `invalid_value` for an invalid pattern, and
   * `unsupported_schema` for one that is not supported or too large to compile.
   */
  pattern(pattern: string, path: string): Dfa {
    let dfa = this.#patterns.get(pattern);
    if (!dfa) {
      const what = `the pattern ${show(pattern)}`;
      dfa = orRefuse(pathTo(path, 'pattern'), () => patternDfa(pattern, this.#fuel), what);
      this.#patterns.set(pattern, dfa);
    }
    return dfa;
  }
}

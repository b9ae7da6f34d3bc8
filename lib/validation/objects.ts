import * as v from 'valibot';
import { isObject } from '../json/property.ts';

/*
 * Valibot's schemas of objects, for values that were parsed from JSON: a list is no object, a record keeps members
 * named `__proto__` and `constructor`, and the issue of an unknown member has the known names as its `requirement`.
 * Use them in every schema of a request (validate.test.ts checks it).
 */

/** Returns the schema of an object whose unknown members are ignored. */
export function object<const TEntries extends v.ObjectEntries>(entries: TEntries): v.ObjectSchema<TEntries, undefined> {
  return ofObjects(v.object(entries));
}

/** Returns the schema of an object whose unknown members are refused. */
export function strictObject<const TEntries extends v.ObjectEntries>(
  entries: TEntries,
): v.StrictObjectSchema<TEntries, undefined> {
  return ofObjects(v.strictObject(entries), Object.keys(entries));
}

/** Returns the schema of objects whose member `key` tells which of the options they are. */
export function variant<const TKey extends string, const TOptions extends v.VariantOptions<TKey>>(
  key: TKey,
  options: TOptions,
): v.VariantSchema<TKey, TOptions, undefined> {
  // Every option of a variant is an object.
  const objects = options as unknown as readonly { type: string; entries: object }[];
  const strict = objects.every(({ type }) => type === 'strict_object');
  const known = strict ? [...new Set(objects.flatMap(({ entries }) => Object.keys(entries)))] : undefined;
  const schema = ofObjects(v.variant(key, options), known);
  const byValue = optionsByValue(key, options);
  return {
    ...schema,
    '~run'(dataset, config) {
      // Valibot would try one option after the other.
      const meant = isObject(dataset.value) ? byValue.get(dataset.value[key]) : undefined;
      return (meant ?? schema)['~run'](dataset, config) as ReturnType<(typeof schema)['~run']>;
    },
  };
}

/** Returns the option for each literal value of the member `key`, without values that several options take. */
function optionsByValue(key: string, options: readonly object[]): Map<unknown, v.GenericSchema> {
  // Options of a variant are objects with that member.
  const all = options as readonly (v.GenericSchema & {
    entries: Record<string, Partial<v.LiteralSchema<string, undefined>>>;
  })[];
  const values = all.map(({ entries }) => entries[key]?.literal);
  const single = all.flatMap((option, i) => {
    const value = values[i];
    return value !== undefined && values.filter((one) => one === value).length === 1 ? [[value, option] as const] : [];
  });
  return new Map<unknown, v.GenericSchema>(single);
}

/** Returns the schema of an object whose member names the caller chooses. The value is kept exactly as sent. */
export function record<
  const TKey extends v.BaseSchema<string, string | number | symbol, v.BaseIssue<unknown>>,
  const TValue extends v.GenericSchema,
>(key: TKey, value: TValue): v.RecordSchema<TKey, TValue, undefined> {
  const schema = v.record(key, value);
  return {
    ...schema,
    // Distinguishes it from a record of Valibot's.
    ...{ requirement: undefined },
    '~run'(dataset, config) {
      const input = dataset.value;
      if (!isObject(input)) return schema['~run']({ value: null }, config);
      // A list of the values has the same issues, but for the last step of their paths.
      const checked = v.array(value)['~run']({ value: Object.values(input) }, config);
      const names = Object.keys(input);
      for (const issue of checked.issues ?? []) {
        const [{ key: index = 0, value } = {}, ...rest] = issue.path ?? [];
        const step = { type: 'object', origin: 'value', input, key: names[Number(index)], value } as v.ObjectPathItem;
        Object.assign(issue, { path: [step, ...rest] });
      }
      return Object.assign(checked, { value: input }) as ReturnType<(typeof schema)['~run']>;
    },
  };
}

function ofObjects<TSchema extends v.GenericSchema>(schema: TSchema, requirement?: readonly string[]): TSchema {
  return {
    ...schema,
    requirement,
    '~run'(dataset: v.UnknownDataset, config: v.Config<v.BaseIssue<unknown>>) {
      // Valibot takes lists for objects.
      return schema['~run'].call(this, isObject(dataset.value) ? dataset : { value: null }, config);
    },
  };
}

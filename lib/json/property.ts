/** Tells whether a parsed JSON value is an object, and neither a list nor null. */
export function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the member `key` of a parsed JSON value; undefined if the value is not an object or lacks it. */
export function property(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

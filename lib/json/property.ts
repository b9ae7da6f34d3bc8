/** Returns the member `key` of a parsed JSON value; undefined if the value is not an object or lacks it. */
export function property(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? // A cast: the condition above has checked that the value is an object.
      (value as Record<string, unknown>)[key]
    : undefined;
}

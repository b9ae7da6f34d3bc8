/** Tells whether a value meets the expectation in cases.json. */
export function matches(value: unknown, expected: unknown): boolean {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(value) && value.length === expected.length && expected.every((one, i) => matches(value[i], one))
    );
  }
  if (typeof expected !== 'object' || expected === null) return value === expected;
  if ('$oneOf' in expected) return (expected.$oneOf as unknown[]).includes(value);
  if ('$type' in expected) return typeof value === expected.$type;
  if (typeof value !== 'object' || value === null) return false;
  if ('$keys' in expected) {
    return Object.keys(value).sort().join('\n') === [...(expected.$keys as string[])].sort().join('\n');
  }
  return Object.entries(expected).every(([key, one]) => key in value && matches((value as never)[key], one));
}

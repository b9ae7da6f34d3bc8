import { expect, test } from 'vitest';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { answerShape } from './extract-shape.ts';

/** Builds 128 keys whose shortest answer has this many characters, as the grammar counts them (`measure.ts`). */
function keysOf(size: number, filler: string): string[] {
  const keys = Array.from({ length: 127 }, (_, i) => `${i} ${filler.repeat(490)}`);
  const rest = size - 2 - keys.reduce((sum, key) => sum + key.length + 6, 0) - 6;
  return [...keys, 'x'.repeat(rest)];
}

const grammarTakes = (keys: readonly string[]) => {
  const properties = Object.fromEntries(keys.map((key) => [key, { type: ['string', 'null'] }]));
  compileSchema({ type: 'object', properties, required: [...keys], additionalProperties: false }, { path: 'schema' });
};

test.each(['x', 'é', '"', '\n'])(
  'keys of %j are refused exactly where the grammar would refuse them, at their own place',
  (filler) => {
    const most = keysOf(65_536, filler);
    expect(answerShape({ keys: most }, 'tasks[0]')).toEqual({ kind: 'keys', keys: most });
    expect(() => grammarTakes(most)).not.toThrow();
    const more = keysOf(65_537, filler);
    expect(() => grammarTakes(more)).toThrow();
    expect(() => answerShape({ fields: more }, 'tasks[0]')).toThrow(
      expect.objectContaining({ code: 'invalid_value', param: 'tasks[0].fields' }),
    );
  },
);

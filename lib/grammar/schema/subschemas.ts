import type { Json, JsonSchema } from '../../answer-shape.ts';
import { pathTo } from '../../param-path.ts';
import { childrenOf, holdingOf } from './keywords.ts';
import { isObject } from './problem.ts';

/**
 * Yields a schema and all its subschemas that are objects, each with its path, a schema before its subschemas.
 *
 * @param schema a schema that `compileSchema` has accepted
 * @param path path of the schema in the caller's input
 */
export function* subschemas(schema: JsonSchema, path: string): Generator<[schema: JsonSchema, path: string]> {
  const open: [schema: Json, path: string][] = [[schema, path]];
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [one, at] = top;
    if (!isObject(one)) continue;
    yield [one, at];
    for (const [keyword, value] of Object.entries<Json>(one)) {
      const holds = holdingOf(keyword, value);
      if (holds === 'value') continue;
      const below = pathTo(at, keyword);
      for (const [name, child] of childrenOf(keyword, holds, value, below)) {
        open.push([child, holds === 'schema' ? below : pathTo(below, name)]);
      }
    }
  }
}

import type { AnswerShape } from '../answer-shape.ts';
import { AssayError } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { LIMITS } from '../grammar/limits.ts';
import { memberSize } from '../grammar/resolve/measure.ts';
import { pathTo } from '../param-path.ts';
import { checkAnswerSchema } from './check-answer-schema.ts';

/** The members of an extract task that say what its answer looks like; `fields` is another name of `keys`. */
interface ShapeFields {
  keys?: readonly string[];
  fields?: readonly string[];
  schema?: object;
}

/**
 * What an extract answer looks like, from `keys`, `schema`, both or neither. `path` is where the task stands in the request.
 *
 * @param fuel what compiling the schemas of the request may take together
 * @throws AssayError where the schema cannot be kept to, or lacks one of the keys; where keys alone are too long together.
 */
export function answerShape(task: ShapeFields, path: string, fuel?: Fuel): AnswerShape {
  const keys = task.keys ?? task.fields;
  const keysParam = pathTo(path, task.keys ? 'keys' : 'fields');
  if (!task.schema) return keys ? keysShape(keys, keysParam) : { kind: 'open' };
  const param = pathTo(path, 'schema');
  const shared = { schema: task.schema, param, ...(fuel ? { fuel } : {}) };
  if (!keys) return checkAnswerSchema(shared);
  return checkAnswerSchema({ ...shared, keys, keysParam });
}

/** Keys without a schema: the shortest answer has an empty text behind each of them. */
function keysShape(keys: readonly string[], param: string): AnswerShape {
  const size = keys.reduce((sum, key) => sum + memberSize(key, 2), 2);
  if (size <= LIMITS.shortestAnswer) return { kind: 'keys', keys };
  throw new AssayError('invalid_value', `${param} are too long together; ask for less in one task.`, { param });
}

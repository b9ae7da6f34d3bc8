import type { ExtractTask } from '../backend.ts';
import type { AnswerShape } from '../contract/answer-shape.ts';
import { AssayError } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { LIMITS } from '../grammar/limits.ts';
import { memberSize } from '../grammar/resolve/measure.ts';
import { pathTo } from '../param-path.ts';
import { checkAnswerSchema } from './check-answer-schema.ts';

/** Holds the members of an extract task that define the shape of its answer; `fields` is an alias of `keys`. */
interface ShapeFields {
  keys?: readonly string[];
  fields?: readonly string[];
  schema?: object;
}

/**
 * Converts a request for values to a task, whose name the batch sets. Throws what `answerShape` throws.
 *
 * @param path path of the task in the request, for errors
 */
export function extractTask(
  fields: ShapeFields & { verbatim?: boolean },
  instruction: string,
  path: string,
  fuel?: Fuel,
): ExtractTask {
  const { verbatim } = fields;
  const shape = answerShape(fields, path, fuel);
  return { type: 'extract', name: '', instruction, shape, ...(verbatim === undefined ? {} : { verbatim }) };
}

/**
 * Returns the shape of an extract answer, from `keys`, `schema`, both or neither.
 *
 * @param path path of the task in the request, for errors
 * @param fuel compile budget that all schemas of the request share
 * @throws AssayError `invalid_type`, `invalid_value` or `unsupported_schema` if `checkAnswerSchema` refuses the schema;
 *   `invalid_value` also if the schema lacks one of the keys, or if there is no schema and even the shortest answer
 *   with these keys exceeds `LIMITS.shortestAnswer`
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

/**
 * Returns the shape of an answer with these keys. Throws `invalid_value` if even the shortest answer, with an empty
 * string for each key, is too long.
 */
function keysShape(keys: readonly string[], param: string): AnswerShape {
  const size = keys.reduce((sum, key) => sum + memberSize(key, 2), 2);
  if (size <= LIMITS.shortestAnswer) return { kind: 'keys', keys };
  throw new AssayError('invalid_value', `${param} are too long together; ask for less in one task.`, { param });
}

/**
 * Maximum lengths, in code points, of the texts that a decide task may generate: `value`, a short answer to a question
 * without options, and `reason`, a few sentences. A text that reaches its limit ends there and counts as complete.
 */
export const FREE_TEXT = { value: 400, reason: 2_000 } as const;

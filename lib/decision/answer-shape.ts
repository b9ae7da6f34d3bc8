import type { AnswerShape } from '../answer-shape.ts';
import { checkAnswerSchema } from '../grammar/check-answer-schema.ts';
import type { Effort } from '../grammar/effort.ts';
import { pathTo } from '../param-path.ts';

/** The members of an extract task that say what its answer looks like; `fields` is another name of `keys`. */
interface ShapeFields {
  keys?: readonly string[];
  fields?: readonly string[];
  schema?: object;
}

/**
 * What an extract answer looks like, from `keys`, `schema`, both or neither. `path` is where the task stands in the request.
 *
 * @param effort what compiling the schemas of the request may take together
 * @throws AssayError where the schema cannot be kept to, or lacks one of the keys.
 */
export function answerShape(task: ShapeFields, path: string, effort?: Effort): AnswerShape {
  const keys = task.keys ?? task.fields;
  if (!task.schema) return keys ? { kind: 'keys', keys } : { kind: 'open' };
  const param = pathTo(path, 'schema');
  const shared = { schema: task.schema, param, ...(effort ? { effort } : {}) };
  if (!keys) return checkAnswerSchema(shared);
  return checkAnswerSchema({
    ...shared,
    keys,
    keysParam: pathTo(path, task.keys ? 'keys' : 'fields'),
  });
}

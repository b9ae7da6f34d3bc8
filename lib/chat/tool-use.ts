import type { JsonSchema } from '../answer-shape.ts';
import type { Tool, ToolUse } from '../backend.ts';
import { type Fuel, sharedFuel } from '../grammar/fuel.ts';
import { checkAnswerSchema } from '../tasks/check-answer-schema.ts';

/** Describes a tool (a function) as sent to Chat Completions and to the Responses API. */
interface SentFunction {
  name: string;
  description?: string | null | undefined;
  parameters?: { readonly [key: string]: unknown } | null | undefined;
}

interface SentUse {
  choice: ToolUse['choice'] | 'none' | { names: readonly string[]; mode: 'auto' | 'required' } | null | undefined;
  parallel: boolean | null | undefined;
  /** Returns the path of the parameters of the function at `index` in the request, for errors. */
  param(index: number): string;
}

/**
 * Returns the tools that the model may call and how; null if there are none, or if the choice is `none`. By default the
 * model decides (`auto`), and parallel calls are allowed.
 *
 * @throws AssayError `invalid_type`, `invalid_value` or `unsupported_schema` if `checkAnswerSchema` refuses the
 *   parameters of a function
 */
export function toolUse(functions: readonly SentFunction[], { choice, parallel, param }: SentUse): ToolUse | null {
  if (functions.length === 0 || choice === 'none') return null;
  const fuel = sharedFuel();
  const tools = functions.map((one, i) => toolOf(one, param(i), fuel));
  if (!choice || typeof choice === 'string') return { tools, choice: choice ?? 'auto', parallel: parallel ?? true };
  // As in OpenAI's API, a named function is called exactly once.
  if ('name' in choice) return { tools, choice: { name: choice.name }, parallel: false };
  const { names, mode } = choice;
  return { tools: tools.filter(({ name }) => names.includes(name)), choice: mode, parallel: parallel ?? true };
}

function toolOf({ name, description, parameters }: SentFunction, param: string, fuel: Fuel): Tool {
  const schema = closedSchema(parameters ?? { type: 'object', properties: {} });
  checkAnswerSchema({ schema, param, jsonSchemaOnly: true, fuel });
  // The cast is safe, because the schema was parsed from JSON.
  return { name, ...(description ? { description } : {}), parameters: schema as JsonSchema };
}

/**
 * Forbids undeclared parameters: sets `additionalProperties` to false at the root of a schema that lists properties but
 * does not say whether others are allowed. A root with `allOf`, `anyOf`, `oneOf` or `$ref` stays as it is.
 */
function closedSchema(schema: { readonly [key: string]: unknown }): { readonly [key: string]: unknown } {
  const open = ['additionalProperties', 'allOf', 'anyOf', 'oneOf', '$ref'].some((name) => name in schema);
  return open || !('properties' in schema) ? schema : { ...schema, additionalProperties: false };
}

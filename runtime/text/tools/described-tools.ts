import type { Json, JsonSchema } from '../../../lib/answer-shape.ts';
import type { Tool } from '../../../lib/backend.ts';

/**
 * Completes tools for templates that write them as function signatures (Hermes 3, Command R+): every member gets a
 * description, at most one type, and schemas of its items and additional members. Only the prompt shows the completed
 * tools; the grammar uses the schemas that were sent.
 */
export function describedTools(tools: readonly Tool[]): Tool[] {
  return tools.map(({ name, description = '', parameters }) => ({
    name,
    description,
    parameters: { type: 'object', ...parameters, properties: describedMembers(parameters.properties) },
  }));
}

function describedMembers(properties: Json | undefined): JsonSchema {
  return Object.fromEntries(
    Object.entries(isSchema(properties) ? properties : {}).map(([name, schema]) => [
      name,
      { description: '', ...typed(schema) },
    ]),
  );
}

/** Keeps the type of a schema only if it has exactly one besides `null`. */
function typed(schema: Json | undefined): JsonSchema {
  if (!isSchema(schema)) return {};
  const { type, ...rest } = schema;
  const types = [type ?? []].flat().filter((one) => one !== 'null');
  const [only] = types;
  if (only === undefined || types.length > 1) return rest;
  if (only === 'array') return { ...rest, type: only, items: typed(rest.items) };
  if (only !== 'object') return { ...rest, type: only };
  const members = rest.properties === undefined ? {} : { properties: describedMembers(rest.properties) };
  return { ...rest, type: only, ...members, additionalProperties: typed(rest.additionalProperties) };
}

function isSchema(value: Json | undefined): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

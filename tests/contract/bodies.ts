import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { ROUTES } from '../../handlers/routes.ts';
import { openApiDocument } from '../../lib/openapi/document.ts';

type Schema = { [keyword: string]: unknown };
type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, Response> };
};
type Ref = { $ref?: string };
type Content = Record<string, { schema: Ref & { anyOf?: Ref[] } }>;
type Response = { $ref?: string; content?: Content };
type Operation = {
  requestBody?: { content: Content };
  responses: Record<string, Response>;
};

const document = openApiDocument(ROUTES) as Document;
const ajv = new Ajv2020({ strict: false, allErrors: true });
// Responses are checked as if nothing could be added to them, so that a field the contract does not know is found.
ajv.addSchema({ $id: 'answers', components: closed(document.components) });
ajv.addSchema({ $id: 'requests', components: document.components });

const ERROR: Content[string]['schema'] = { $ref: '#/components/schemas/ErrorBody' };

/** Returns the contract's issues with a body of this operation; empty if there are none. */
export function answerProblems(method: string, path: string, status: number, type: string, body: unknown): string[] {
  const operation = operationAt(method, formatOf(path, body));
  const response = operation?.responses[status];
  // Statuses that belong to no operation (404 of an unknown route, 405) still have an error body.
  const own = response?.content?.[type]?.schema;
  const schema = (status >= 400 && !own) || !response ? errorSchema(path, body) : own;
  if (operation && status >= 400 && !response && ![404, 405].includes(status))
    return [`${status} is not in the contract`];
  const refs = [schema, ...(schema?.anyOf ?? [])].flatMap((one) => one?.$ref ?? []);
  if (refs.length === 0) return path === '/openapi.json' ? [] : [`${type} is not in the contract`];
  const found = refs.map((ref) => problems('answers', ref, body));
  return found.find((list) => list.length === 0) ?? found.flat();
}

/** Each of the decision formats is also answered at the others' paths: returns the path of the body's format. */
function formatOf(path: string, body: unknown): string {
  if (path !== '/v1/decisions' && path !== '/v1/systemone') return path;
  const { answers, detail, usage, error } = Object(body);
  if (usage?.total_input_tokens !== undefined || typeof error?.code === 'number') return '/v1beta/decisions';
  return detail !== undefined || (answers !== undefined && !Array.isArray(answers)) ? '/v1/systemone' : '/v1/decisions';
}

/** The error body of a path: that of its operation's own errors. */
function errorSchema(path: string, body: unknown): Content[string]['schema'] {
  const { post } = pathItem(formatOf(path, body)) ?? {};
  const name = post?.responses[500]?.$ref?.split('/').at(-1);
  return document.components.responses[name ?? '']?.content?.['application/json']?.schema ?? ERROR;
}

/** Returns the contract's issues with a request of this operation. */
export function requestProblems(method: string, path: string, body: unknown): string[] {
  const ref = operationAt(method, path)?.requestBody?.content['application/json']?.schema.$ref;
  return ref === undefined ? ['the operation takes no body'] : problems('requests', ref, body);
}

function operationAt(method: string, path: string): Operation | undefined {
  return pathItem(path)?.[method.toLowerCase()];
}

/** Returns the operations of a path, by method, or those of the pattern that it matches. */
function pathItem(path: string): Document['paths'][string] | undefined {
  // Of several patterns, the one with the longest fixed end is meant, as in `createApp`.
  const pattern = Object.keys(document.paths)
    .filter((one) => new RegExp(`^${one.replaceAll(/\{\w+\}/g, '.+')}$`).test(path))
    .sort((one, other) => other.length - one.length)[0];
  return document.paths[document.paths[path] ? path : (pattern ?? '')];
}

const validators = new Map<string, ValidateFunction>();

function problems(side: 'answers' | 'requests', ref: string, body: unknown): string[] {
  const key = side + ref;
  const validate = validators.get(key) ?? ajv.compile({ $ref: key });
  validators.set(key, validate);
  return validate(body) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const copy: Schema = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, closed(inner)]));
  if (copy.type === 'object' && copy.properties && copy.additionalProperties === undefined)
    copy.additionalProperties = false;
  return copy;
}

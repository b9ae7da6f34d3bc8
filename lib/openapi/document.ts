import { type ConversionConfig, toJsonSchemaDefs } from '@valibot/to-json-schema';
import type * as v from 'valibot';
import { type ErrorFormat, errorStatus } from '../error-status.ts';
import { ERROR_CODES } from '../errors.ts';
import { MAX_BODY_BYTES } from '../json/body.ts';
import { MAX_DEPTH, MAX_PARTS } from '../json/scan.ts';
import { VERSION } from '../version.ts';
import { COMPONENTS } from './components.ts';
import { EXAMPLES } from './examples.ts';
import type { Operation } from './operation.ts';

/** Builds the OpenAPI 3.1 document of these operations from the schemas that validate requests. */
export function openApiDocument(operations: readonly Operation[]): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Assay',
      version: VERSION,
      description:
        'Answers many small judgement tasks about one shared context in one request, with a local language model. It has ' +
        'two parts: the decision service, and a model server that manages models and chats. For work that nobody waits ' +
        'for, send the header `assay-priority: batch`: interactive requests then go first.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'The default address of a server on your machine' }],
    tags: [
      {
        name: TAGS.decisions,
        description: 'Answer many decide and extract tasks about one context. Every call needs an API key.',
      },
      {
        name: TAGS.openai,
        description:
          "Decisions with probabilities, in the formats of OpenAI's Decisions API and System One. Every call needs an API key.",
      },
      {
        name: TAGS.extractions,
        description:
          "Typed fields of a text with probabilities and spans, in the format of Cloudflare's Clairic. Every call needs an API key.",
      },
      {
        name: TAGS.bulk,
        description:
          "Many states in one request, and files of requests answered in the background, as OpenAI's Batch API. Every call needs an API key.",
      },
      {
        name: TAGS.models,
        description: 'Manage the models on this machine, and chat. On the loopback address no API key is needed.',
      },
      { name: TAGS.own, description: 'The OpenAPI document, and metrics.' },
    ],
    paths: paths(operations),
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key of this server.' } },
      responses: errorResponses(operations),
      schemas: jsonSchemas(),
    },
  };
}

const TAGS = {
  decisions: 'decision service',
  openai: 'decision formats',
  systemone: 'decision formats',
  google: 'decision formats',
  workersai: 'extractions',
  extractions: 'extractions',
  bulk: 'bulk',
  models: 'model server',
  own: 'this server',
};

/** The OpenAPI `security` requirements. The alternative `{}` means that a call without a key is allowed. */
const SECURITY: Record<Operation['key'], object[]> = {
  always: [{ bearer: [] }],
  'off loopback': [{}, { bearer: [] }],
  never: [],
};

function paths(operations: readonly Operation[]): Record<string, object> {
  const byPath: Record<string, object> = {};
  for (const row of operations) {
    byPath[row.path] = { ...byPath[row.path], [row.method.toLowerCase()]: operation(row) };
  }
  return byPath;
}

function operation(row: Operation): object {
  const { api, own, part, path, id, summary, description, key, request, unavailable } = row;
  return {
    operationId: id,
    tags: [TAGS[part ?? (own ? 'own' : api)]],
    summary,
    ...(description ? { description } : {}),
    ...(path.includes('{') ? { parameters: parametersOf(path) } : {}),
    security: SECURITY[key],
    ...(request
      ? {
          requestBody: {
            required: true,
            content: {
              'application/json': requestContent(id, request),
              ...(row.multipart ? { 'multipart/form-data': inParts(request) } : {}),
            },
          },
        }
      : {}),
    responses: {
      200: { description: own ? 'Success.' : 'Done.', headers: headersOf(row), content: responseContent(row) },
      ...(unavailable
        ? { 503: { description: unavailable, headers: headersOf(row), content: responseContent(row) } }
        : {}),
      ...Object.fromEntries(
        statusesOf(row).map((status) => [status, { $ref: `#/components/responses/${errorName(api, status)}` }]),
      ),
    },
  };
}

function headersOf({ api }: Operation): object {
  return api === 'decisions' ? { ...REQUEST_ID_HEADER, ...CUT_TASKS } : REQUEST_ID_HEADER;
}

const CUT_TASKS = {
  'Assay-Cut-Tasks': {
    description:
      'Names of the tasks whose answers were cut, at max_output_tokens or the end of the context, in the order sent, ' +
      'separated by commas. For /decide and /extract the name is `result`. If the names exceed 2,048 characters, the last ' +
      'entry counts those omitted, such as `+3`. ' +
      'Absent if no answer was cut.',
    schema: { type: 'string', examples: ['refund, facts'] },
  },
};

function parametersOf(path: string): object[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    ...(name === 'account'
      ? { description: 'Any text; ignored.', schema: { type: 'string' } }
      : name === 'id'
        ? { description: 'Id of the file or batch.', schema: { type: 'string' } }
        : {
            description: 'Id of the model. The slash may be sent as / or as %2F.',
            schema: { type: 'string', examples: ['assay/starter'] },
          }),
  }));
}

function requestContent(id: string, request: v.GenericSchema): object {
  return { schema: refToSchema(request), ...exampleOf(id, 'request') };
}

/** Describes the body in parts, the other ones of which no schema can name. */
function inParts(request: v.GenericSchema): object {
  return {
    schema: {
      type: 'object',
      description:
        'The JSON in the part `request`. Each of its `assets` with `part` has its bytes in the part of that name.',
      properties: { request: refToSchema(request) },
      required: ['request'],
      additionalProperties: { type: 'string', format: 'binary' },
    },
  };
}

function responseContent({ id, response, or, events, lines }: Operation): object {
  if (response === 'text/plain') return { [response]: { schema: { type: 'string' } } };
  if (response === 'application/octet-stream') return { [response]: { schema: { type: 'string', format: 'binary' } } };
  if (response === 'application/json')
    return { [response]: { schema: { type: 'object', additionalProperties: true } } };
  // Not `oneOf`: a server's answer may also match the schema of that of an edge.
  const schema = or ? { anyOf: [response, or].map(refToSchema) } : refToSchema(response);
  return {
    'application/json': { schema, ...exampleOf(id, 'response') },
    ...(events ? { 'text/event-stream': { schema: refToSchema(events) } } : {}),
    ...(lines ? { 'application/x-ndjson': { schema: refToSchema(lines) } } : {}),
  };
}

const NAMES = new Map<unknown, string>(Object.entries(COMPONENTS).map(([name, schema]) => [schema, name]));

function refToSchema(schema: v.GenericSchema): { $ref: string } {
  const name = NAMES.get(schema);
  if (name === undefined) throw new Error('A schema of an operation needs a name in lib/openapi/components.ts.');
  return { $ref: refTo(name) };
}

function exampleOf(id: string, side: 'request' | 'response'): object {
  const example = EXAMPLES[id];
  const value = example?.[side];
  return value ? { examples: { [id]: { summary: example.summary, value } } } : {};
}

/**
 * Returns the error statuses of an operation in ascending order: its own, 403 (request from a foreign web page), 401 if
 * it may need a key, and 500 unless the server answers it from memory.
 */
function statusesOf({ key, own, errors }: Operation): number[] {
  return [...errors, 403, ...(own ? [] : [500]), ...(key === 'never' ? [] : [401])].sort((a, b) => a - b);
}

function errorResponses(operations: readonly Operation[]): Record<string, object> {
  const named = operations.flatMap((row) =>
    statusesOf(row).map((status) => [errorName(row.api, status), errorResponse(row.api, status)] as const),
  );
  return Object.fromEntries(named.sort(([one], [other]) => one.localeCompare(other)));
}

/** Returns the contract as JSON text, as it is committed in `openapi.json` and served at `/openapi.json`. */
export function openApiText(operations: readonly Operation[]): string {
  return `${JSON.stringify(openApiDocument(operations), null, 2)}\n`;
}

const TITLES: Record<number, string> = {
  400: `The request is malformed, or larger than ${MAX_BODY_BYTES >> 20} MiB, ${MAX_DEPTH} levels or ${MAX_PARTS} values`,
  401: 'The API key is missing or unknown',
  403: 'The key, the hub or the origin does not allow this',
  404: 'The model does not exist',
  409: 'The state of the model does not allow this',
  413: 'The body is too large',
  415: 'The content type is not application/json',
  422: 'A field is missing or invalid',
  429: 'Too many requests; try again after the number of seconds in Retry-After',
  500: 'The server failed; try again later',
  502: 'The model hub cannot be reached',
  507: 'The disk is full',
};

const HEADERS: Record<number, object> = {
  401: { 'WWW-Authenticate': { description: 'Bearer', schema: { type: 'string' } } },
  429: {
    'Retry-After': { description: 'Seconds to wait before trying again.', schema: { type: 'integer', minimum: 1 } },
  },
};

const REQUEST_ID_HEADER = {
  'X-Request-Id': { description: "Id of the request in the server's log.", schema: { type: 'string' } },
};

const ERROR_NAMES: Record<ErrorFormat, { response: string; body: string }> = {
  decisions: { response: 'DecisionError', body: 'ErrorBody' },
  models: { response: 'ModelServerError', body: 'ErrorBody' },
  openai: { response: 'OpenAiError', body: 'OpenAiErrorBody' },
  google: { response: 'GoogleError', body: 'GoogleErrorBody' },
  workersai: { response: 'RunError', body: 'RunErrorBody' },
  systemone: { response: 'SystemOneError', body: 'SystemOneErrorBody' },
};

/**
 * Returns the name of the response to an error of this format and status, as a key of `components.responses` in the
 * contract.
 */
function errorName(format: ErrorFormat, status: number): string {
  return `${ERROR_NAMES[format].response}${status}`;
}

/**
 * Builds the OpenAPI response object of one error status. Its description lists the error codes that are sent with this
 * status in this format.
 */
function errorResponse(format: ErrorFormat, status: number): object {
  const codes = ERROR_CODES.filter(
    (code) => errorStatus(code, format)?.status === status && code !== 'route_not_found',
  );
  return {
    description: `${TITLES[status]}. Codes: ${codes.join(', ')}.`,
    headers: { ...REQUEST_ID_HEADER, ...HEADERS[status] },
    content: { 'application/json': { schema: { $ref: refTo(ERROR_NAMES[format].body) } } },
  };
}

type JsonSchemaObject = { [keyword: string]: unknown };

/** Converts `COMPONENTS` to JSON Schemas. A named schema inside another becomes a `$ref`. */
function jsonSchemas(): Record<string, JsonSchemaObject> {
  return toJsonSchemaDefs(COMPONENTS, {
    target: 'draft-2020-12',
    // Describes what clients send: fields with defaults are optional, and transformed values have the type before the
    // transformation.
    typeMode: 'input',
    // JSON Schema has no keyword for rules across members; the descriptions state them.
    ignoreActions: ['rule', 'presence', 'late_rule'],
    overrideRef: ({ referenceId }) => refTo(referenceId),
    overrideAction: ({ valibotAction, jsonSchema }) =>
      valibotAction.type === 'max_code_points'
        ? // Only this action has this `type`, so the cast is safe.
          { ...jsonSchema, maxLength: (valibotAction as v.MaxCodePointsAction<string, number, undefined>).requirement }
        : undefined,
    overrideSchema: plain,
  }) as Record<string, JsonSchemaObject>;
}

/** Returns the `$ref` of a named schema in openapi.json. */
function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

type SchemaContext = Parameters<NonNullable<ConversionConfig['overrideSchema']>>[0];

/** Replaces parts of the generated JSON Schema that client generators do not understand. */
function plain({ valibotSchema, jsonSchema }: SchemaContext): SchemaContext['jsonSchema'] | undefined {
  switch (valibotSchema.type) {
    case 'literal': {
      const { const: only, ...rest } = jsonSchema;
      return { ...rest, type: Number.isInteger(only) ? 'integer' : (typeof only as 'string'), enum: [only!] };
    }
    case 'custom':
      // A custom check has no JSON Schema of its own; the metadata piped after it describes the value.
      return {};
    case 'record': {
      const { propertyNames: _, additionalProperties, ...rest } = jsonSchema;
      return { ...rest, additionalProperties: isEmpty(additionalProperties) ? true : additionalProperties! };
    }
    case 'object':
      return plainObject(jsonSchema);
    case 'nullable':
    case 'nullish':
      return orNull(jsonSchema);
    case 'variant':
      // Only a variant schema has this `type`. `discriminator` is a keyword of OpenAPI that the type of a JSON Schema
      // lacks.
      return { ...jsonSchema, discriminator: discriminator(valibotSchema as Variant) } as typeof jsonSchema;
    default:
      return undefined;
  }
}

/**
 * Returns an object schema without the fields that are always refused (`unsupported` of `lib/validation/rules.ts`),
 * and without an empty `required`.
 */
function plainObject({
  properties = {},
  required = [],
  ...rest
}: SchemaContext['jsonSchema']): SchemaContext['jsonSchema'] {
  const offered = Object.entries(properties).filter(
    ([, property]) => !JSON.stringify(property).includes('"x-unsupported"'),
  );
  return { ...rest, properties: Object.fromEntries(offered), ...(required.length > 0 ? { required } : {}) };
}

function isEmpty(schema: unknown): boolean {
  return typeof schema === 'object' && schema !== null && Object.keys(schema).length === 0;
}

type Variant = v.VariantSchema<string, v.VariantOptions<string>, undefined>;

function discriminator({ key, options }: Variant) {
  const mapping = options.map((option) => {
    // The cast is safe, because every option of a variant is an object with a literal under the key.
    const literal = (option as unknown as { entries: Record<string, v.LiteralSchema<string, undefined>> }).entries[key]!
      .literal;
    const name = NAMES.get(option);
    if (name === undefined) throw new Error(`The variant ${key}=${literal} needs a name in lib/openapi/components.ts.`);
    return [literal, refTo(name)];
  });
  return { propertyName: key, mapping: Object.fromEntries(mapping) };
}

/** Rewrites `anyOf: [X, null]` to X with null among its types. Returns undefined if that is not possible. */
function orNull(jsonSchema: SchemaContext['jsonSchema']): SchemaContext['jsonSchema'] | undefined {
  const { anyOf, ...rest } = jsonSchema;
  const inner = anyOf?.[0];
  if (typeof inner !== 'object') return undefined;
  if (inner.anyOf) return { ...inner, ...rest, anyOf: [...inner.anyOf, { type: 'null' }] };
  if (inner.type === 'null') return inner;
  if (typeof inner.type !== 'string') return undefined;
  const choices = inner.enum ? { enum: [...inner.enum, null] } : {};
  return { ...inner, ...rest, ...choices, type: [inner.type, 'null'] };
}

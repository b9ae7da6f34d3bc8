import type { ErrorFormat } from '../error-status.ts';
import { VERSION } from '../version.ts';
import { COMPONENTS } from './components.ts';
import { errorName, errorResponse, REQUEST_ID_HEADER } from './errors.ts';
import { EXAMPLES } from './examples.ts';
import { jsonSchemas, refTo } from './json-schemas.ts';
import { OPERATIONS, type Operation } from './operations.ts';
import { OWN_PATHS, OWN_TAG } from './own-paths.ts';
import { SECURITY } from './security.ts';

/** Builds the OpenAPI 3.1 document of both APIs from the schemas that validate requests. */
export function openApiDocument(): object {
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
        name: TAGS.models,
        description: 'Manage the models on this machine, and chat. On the loopback address no API key is needed.',
      },
      { name: OWN_TAG, description: 'The OpenAPI document, and metrics.' },
    ],
    paths: { ...paths(), ...OWN_PATHS },
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key of this server.' } },
      responses: errorResponses(),
      schemas: jsonSchemas(COMPONENTS),
    },
  };
}

const TAGS: Record<ErrorFormat, string> = {
  decisions: 'decision service',
  openai: 'decision formats',
  systemone: 'decision formats',
  models: 'model server',
};

function paths(): Record<string, object> {
  const byPath: Record<string, object> = {};
  for (const row of OPERATIONS) byPath[row.path] = { ...byPath[row.path], [row.method]: operation(row) };
  return byPath;
}

function operation(row: Operation): object {
  const { api, id, summary, description, request } = row;
  return {
    operationId: id,
    tags: [TAGS[api]],
    summary,
    ...(description ? { description } : {}),
    ...(row.path.includes('{model_id}') ? { parameters: [MODEL_ID] } : {}),
    security: SECURITY[row.key],
    ...(request ? { requestBody: { required: true, content: { 'application/json': requestContent(row) } } } : {}),
    responses: {
      200: { description: 'Done.', headers: headersOf(row), content: responseContent(row) },
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

const MODEL_ID = {
  name: 'model_id',
  in: 'path',
  required: true,
  description: 'Id of the model. The slash may be sent as / or as %2F.',
  schema: { type: 'string', examples: ['assay/starter'] },
};

function requestContent({ id, request }: Operation): object {
  return { schema: { $ref: refTo(request!) }, ...exampleOf(id, 'request') };
}

function responseContent({ id, response, edge, events }: Operation): object {
  // Not `oneOf`: a server's answer may also match the schema of an edge's.
  const schema = edge ? { anyOf: [response, edge].map((name) => ({ $ref: refTo(name) })) } : { $ref: refTo(response) };
  return {
    'application/json': { schema, ...exampleOf(id, 'response') },
    ...(events ? { 'text/event-stream': { schema: { $ref: refTo(events) } } } : {}),
  };
}

function exampleOf(id: string, side: 'request' | 'response'): object {
  const example = EXAMPLES[id];
  const value = example?.[side];
  return value ? { examples: { [id]: { summary: example.summary, value } } } : {};
}

/**
 * Returns the error statuses of an operation in ascending order: its own, 403 (request from a foreign web page) and
 * 500, and 401 if it may need a key.
 */
function statusesOf({ key, errors }: Operation): number[] {
  return [...errors, 403, 500, ...(key === 'never' ? [] : [401])].sort((a, b) => a - b);
}

function errorResponses(): Record<string, object> {
  const named = OPERATIONS.flatMap((row) =>
    statusesOf(row).map((status) => [errorName(row.api, status), errorResponse(row.api, status)] as const),
  );
  return Object.fromEntries(named.sort(([one], [other]) => one.localeCompare(other)));
}

/** Returns the contract as JSON text, as it is committed in `openapi.json` and served at `/openapi.json`. */
export function openApiText(): string {
  return `${JSON.stringify(openApiDocument(), null, 2)}\n`;
}

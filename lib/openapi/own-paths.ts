import { errorName, REQUEST_ID_HEADER } from './errors.ts';
import { SECURITY } from './security.ts';

export const OWN_TAG = 'this server';

/** Paths of the contract for the routes that belong to neither of the two APIs. */
export const OWN_PATHS = {
  '/openapi.json': {
    get: {
      operationId: 'getContract',
      tags: [OWN_TAG],
      summary: 'This document',
      security: SECURITY.never,
      responses: {
        200: okBody('application/json', { type: 'object', additionalProperties: true }),
        403: { $ref: `#/components/responses/${errorName('models', 403)}` },
      },
    },
  },
  '/metrics': {
    get: {
      operationId: 'getMetrics',
      tags: [OWN_TAG],
      summary: "Metrics of the server and its engine, in Prometheus' text format",
      security: SECURITY['off loopback'],
      responses: {
        200: okBody('text/plain', { type: 'string' }),
        401: { $ref: `#/components/responses/${errorName('models', 401)}` },
        403: { $ref: `#/components/responses/${errorName('models', 403)}` },
      },
    },
  },
};

function okBody(type: string, schema: object): object {
  return { description: 'Success.', headers: REQUEST_ID_HEADER, content: { [type]: { schema } } };
}

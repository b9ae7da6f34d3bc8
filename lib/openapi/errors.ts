import { type ErrorFormat, errorStatus } from '../error-status.ts';
import { ERROR_CODES } from '../errors.ts';
import { MAX_BODY_BYTES } from '../json/body.ts';
import { MAX_DEPTH, MAX_PARTS } from '../json/scan.ts';
import { refTo } from './json-schemas.ts';

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

export const REQUEST_ID_HEADER = {
  'X-Request-Id': { description: "Id of the request in the server's log.", schema: { type: 'string' } },
};

const NAMES: Record<ErrorFormat, { response: string; body: string }> = {
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
export function errorName(format: ErrorFormat, status: number): string {
  return `${NAMES[format].response}${status}`;
}

/**
 * Builds the OpenAPI response object of one error status. Its description lists the error codes that are sent with this
 * status in this format.
 */
export function errorResponse(format: ErrorFormat, status: number): object {
  const codes = ERROR_CODES.filter(
    (code) => errorStatus(code, format)?.status === status && code !== 'route_not_found',
  );
  return {
    description: `${TITLES[status]}. Codes: ${codes.join(', ')}.`,
    headers: { ...REQUEST_ID_HEADER, ...HEADERS[status] },
    content: { 'application/json': { schema: { $ref: refTo(NAMES[format].body) } } },
  };
}

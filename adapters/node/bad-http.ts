import { randomUUID } from 'node:crypto';
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorResponse } from '../../handlers/error-response.ts';
import { AssayError } from '../../lib/errors.ts';

type Refused = Error & { code?: string };

/** What Node refuses by itself gets the error body and the request id that every response has (open-points.md, part A). */
export function answerBadHttp(server: Server): void {
  const answering = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => answering.set(socket, response));
  server.on('clientError', (error: Refused, socket) => {
    const begun = answering.get(socket);
    const within = begun?.headersSent === true && !begun.writableFinished;
    if (error.code === 'ECONNRESET' || !socket.writable || within) socket.destroy();
    else void inText(badHttp(reason(error))).then((text) => socket.end(text));
  });
  // An expectation that is not known may be ignored (RFC 9110, 10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/** A request that no handler saw. Which interface was meant is not known: 400 is a status of both. */
export function badHttp(error: AssayError): Response {
  const response = errorResponse(error, 'decisions');
  response.headers.set('x-request-id', randomUUID());
  return response;
}

function reason({ code, message }: Refused): AssayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AssayError('request_too_large', 'The headers are longer than 16 KiB together. Send less in them.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AssayError('malformed_json', 'The request did not come to its end in time. Send it again.');
    default:
      return new AssayError('malformed_json', `This is not HTTP/1.1 as a server can read it: ${message}.`);
  }
}

async function inText(response: Response): Promise<string> {
  const body = await response.text();
  response.headers.set('content-length', String(Buffer.byteLength(body)));
  response.headers.set('connection', 'close');
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status]}\r\n${headers}\r\n${body}`;
}

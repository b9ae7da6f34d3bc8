import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorResponse } from '../../handlers/error-response.ts';
import { AssayError } from '../../lib/errors.ts';

type Refused = Error & { code?: string };
type Exchange = { request: IncomingMessage; response: ServerResponse };

/** Milliseconds that a refused client has to read the response and close its side of the connection. */
const LINGER_MS = 1000;

/**
 * Makes `server` answer CONNECT, and requests that Node's HTTP parser refuses, with an error body and a request id as
 * in all responses (docs/interface.md, D-16 and D-21). Serves a request with an unknown `Expect` header as any other.
 */
export function answerBadHttp(server: Server): void {
  const open = new WeakMap<Duplex, Set<Exchange>>();
  const refused = new WeakSet<Duplex>();
  server.on('request', (request, response) => {
    const mine = open.get(request.socket) ?? new Set();
    open.set(request.socket, mine);
    const exchange = { request, response };
    mine.add(exchange);
    response.once('close', () => mine.delete(exchange));
  });

  async function refuse(socket: Duplex, response: Response): Promise<void> {
    // Node emits `clientError` again for further bytes of a client that was already refused.
    if (refused.has(socket)) return;
    refused.add(socket);
    // Earlier requests on this connection are answered first: bytes written now would look like part of their
    // responses.
    const owed = [...(open.get(socket) ?? [])].filter(({ request, response: r }) => request.complete || r.headersSent);
    if (owed.length === 0) return endSoon(socket, await inText(response));
    await Promise.all(owed.map(({ response: r }) => new Promise((resolve) => r.once('close', resolve))));
    // The client has these responses. What it sent after the last request is not a request, so nothing answers it.
    endSoon(socket, '');
  }

  server.on('clientError', (error: Refused, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else void refuse(socket, badHttp(reason(error)));
  });
  server.on('connect', (_, socket) => {
    socket.on('error', () => socket.destroy());
    const response = badHttp(
      new AssayError(
        'method_not_allowed',
        'This is not a proxy: CONNECT is not allowed. Send the request itself, without a proxy.',
      ),
    );
    response.headers.set('allow', 'GET, HEAD, POST, DELETE, OPTIONS');
    void refuse(socket, response);
  });
  // An unknown expectation may be ignored (RFC 9110, 10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/** Answers the request that is arriving at `socket` with `error`, and ends the connection. */
export async function endWith(socket: Duplex, error: AssayError): Promise<void> {
  endSoon(socket, await inText(badHttp(error)));
}

/**
 * Builds the response to a request that cannot be passed to the app, with a new request id. The API that the client
 * meant is unknown, so the response has the status of the decision service: 400, not 413 or 431, for headers that are
 * too long (docs/interface.md, D-17).
 */
export function badHttp(error: AssayError): Response {
  const response = errorResponse(error, 'decisions');
  response.headers.set('x-request-id', randomUUID());
  return response;
}

function reason({ code, message }: Refused): AssayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AssayError('request_too_large', 'The headers together are longer than 16 KiB. Shorten them.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AssayError('malformed_json', 'The request did not arrive completely in time. Send it again.');
    default:
      return new AssayError(
        'malformed_json',
        `The request is not valid HTTP/1.1: ${message}. Send it with an HTTP client such as curl.`,
      );
  }
}

/**
 * Sends `text`, ends this side of the connection, and destroys the connection if the client has not closed it after
 * `LINGER_MS`. Closing at once could lose the response while the client is still sending (RFC 9112, 9.6). Never closing
 * would let half-open connections fill the connection limit.
 */
function endSoon(socket: Duplex, text: string): void {
  const over = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(over));
  socket.end(text);
}

async function inText(response: Response): Promise<string> {
  const body = await response.text();
  response.headers.set('content-length', String(Buffer.byteLength(body)));
  response.headers.set('connection', 'close');
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status]}\r\n${headers}\r\n${body}`;
}

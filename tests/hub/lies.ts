import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { HubServer } from './hub-server.ts';

/** Answers one request in place of the hub. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** An entry of a list of files that names no file. */
export const DIRECTORY = { type: 'directory', oid: 'a'.repeat(40), size: 0, path: 'x' };

/** Answers each request for the list of files with `answer`. */
export function lieAboutFiles(hub: HubServer, answer: Answer): void {
  hub.fail({ on: 'api', path: 'tree', fault: { kind: 'custom', answer } });
}

/** Sends `begin`, then `chunk` until the client closes the connection, compressed if requested. */
export function endless(chunk: string, { gzip = false, begin = '' } = {}): Answer {
  return (_request, response) => {
    response.setHeader('content-type', 'application/json');
    if (gzip) response.setHeader('content-encoding', 'gzip');
    const body = Readable.from(
      (function* () {
        yield begin;
        for (;;) yield chunk;
      })(),
    );
    (gzip ? pipeline(body, createGzip(), response) : pipeline(body, response)).catch(() => undefined);
  };
}

/** Sends `page` after `delayMs`, with a link to a further one, for as long as pages are requested. */
export function endlessPages(hub: HubServer, page: unknown, { delayMs = 0, onPage = () => {} } = {}): Answer {
  let pages = 0;
  return (request, response) => {
    pages += 1;
    onPage();
    const { pathname } = new URL(request.url ?? '/', hub.endpoint);
    response.setHeader('Link', `<${hub.endpoint}${pathname}?cursor=${pages}>; rel="next"`);
    setTimeout(() => response.end(JSON.stringify(page)), delayMs);
  };
}

/** Begins a list, and sends one space of it every 20 ms until the client closes the connection. */
export const trickle: Answer = (_request, response) => {
  response.write('[');
  const drip = setInterval(() => response.write(' '), 20);
  response.on('close', () => clearInterval(drip));
};

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { RowRequest } from './row.ts';

/** A response, read to its end. */
export interface Received {
  status: number;
  headers: Headers;
  text: string;
}

/** Sends one request; returns undefined for a caller who left as the row says, or as soon as `leaving` resolves. */
export type Send = (
  request: RowRequest & { method: string; headers: Record<string, string> },
  leaving?: Promise<void>,
) => Promise<Received | undefined>;

type Sendable = Parameters<Send>[0];

/** Sends to a `fetch` function in this process. */
export function fetchDirectly(fetch: (request: Request) => Promise<Response>): Send {
  return async (sent, leaving) => {
    const caller = new AbortController();
    const pieces = piecesOf(sent);
    const request = new Request(`http://${sent.headers.host ?? 'localhost'}${sent.path}`, {
      method: sent.method,
      headers: sent.headers,
      signal: caller.signal,
      ...(pieces.length > 0 ? { body: streamOf(pieces), duplex: 'half' } : {}),
    });
    const answer = fetch(request);
    if (leaving) {
      await leaving;
      caller.abort();
      await (await answer).body?.cancel();
      return undefined;
    }
    const response = await answer;
    const decoder = new TextDecoder();
    let text = '';
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      if (sent.leave === 'after first event' && text.includes('data:')) return void caller.abort();
    }
    return { status: response.status, headers: response.headers, text };
  };
}

/** Sends over a socket, with full control of Host, length and chunks. */
export function sendTo(origin: string): Send {
  return (sent, leaving) =>
    new Promise((resolve, reject) => {
      const pieces = piecesOf(sent);
      const length = pieces.length > 0 && !sent.chunks ? { 'content-length': String(byteLength(pieces)) } : {};
      const { hostname, port } = new URL(origin);
      const options = { hostname, port, path: sent.path, method: sent.method, headers: { ...length, ...sent.headers } };
      const request = httpRequest({ ...options, agent: false }, (response) => {
        read(response, sent, () => {
          request.destroy();
          resolve(undefined);
        }).then(resolve, reject);
      });
      request.on('error', reject);
      leaving?.then(() => {
        resolve(undefined);
        request.destroy();
      }, reject);
      for (const piece of pieces) request.write(piece);
      request.end();
    });
}

async function read(response: IncomingMessage, sent: Sendable, leave: () => void): Promise<Received> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response) {
    text += piece;
    if (sent.leave === 'after first event' && text.includes('data:')) leave();
  }
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headersDistinct)) {
    for (const one of value ?? []) headers.append(name, one);
  }
  return { status: response.statusCode ?? 0, headers, text };
}

function piecesOf(sent: RowRequest): Uint8Array<ArrayBuffer>[] {
  const encode = (text: string) => new TextEncoder().encode(text);
  if (sent.chunks) return sent.chunks.map(encode);
  if (sent.json !== undefined) return [encode(JSON.stringify(sent.json))];
  if (sent.body === undefined) return [];
  return [typeof sent.body === 'string' ? encode(sent.body) : sent.body];
}

function streamOf(pieces: Uint8Array<ArrayBuffer>[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

function byteLength(pieces: Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
}

/** Returns the data of all events of a stream, parsed if they are JSON. */
export function eventsOf(text: string): unknown[] {
  const events: unknown[] = [];
  const parser = createParser({
    onEvent: ({ data }) => events.push(data === '[DONE]' ? data : JSON.parse(data)),
  });
  parser.feed(text);
  return events;
}

import { Agent, request } from 'node:http';

export interface Answer {
  /** Status of the response; 0 if the connection failed. */
  status: number;
  /** Milliseconds until the last byte of the answer. */
  ms: number;
  retryAfterMs: number;
}

const agent = new Agent({ keepAlive: true });

/**
 * Sends one request and reads the answer. Never rejects. Uses node:http because it takes a third of the processor time
 * of `fetch`, and the clients share the machine with the server.
 */
export function call(url: string, key?: string, body?: string): Promise<Answer> {
  const began = performance.now();
  const headers = {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  return new Promise((resolve) => {
    const done = (status: number, retryAfter = '0') =>
      resolve({ status, ms: performance.now() - began, retryAfterMs: 1000 * Number(retryAfter) });
    const sent = request(url, { agent, method: body === undefined ? 'GET' : 'POST', headers }, (response) => {
      response.on('end', () => done(response.statusCode!, response.headers['retry-after']));
      response.on('error', () => done(0));
      response.resume();
    });
    sent.on('error', () => done(0));
    sent.end(body);
  });
}

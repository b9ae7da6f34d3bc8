import { request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../runtime/engine/random.ts';
import type { Operation } from './request.ts';

/** Describes the behaviour of a client. Times are in milliseconds. */
export interface Manner {
  /** Pause between pieces of the body. */
  sendPauseMs: number;
  /** Pause between reads of the answer. */
  readPauseMs: number;
  /** Leaves after this time; null: stays. */
  leaveMs: number | null;
  /** Time after which it no longer believes in an answer. */
  patienceMs: number;
}

export const POLITE: Manner = { sendPauseMs: 0, readPauseMs: 0, leaveMs: null, patienceMs: 60_000 };

export function mannerOf(random: Random): Manner {
  const kind = random.uniform();
  const ms = Math.round(random.uniform() * 400);
  if (kind < 0.08) return { ...POLITE, sendPauseMs: ms };
  if (kind < 0.16) return { ...POLITE, readPauseMs: ms };
  if (kind < 0.26) return { ...POLITE, leaveMs: ms };
  return POLITE;
}

/** Describes the end of a request, as its client saw it. */
export type Outcome =
  | { kind: 'answered'; status: number; type: string; text: string }
  /** The client left, as planned. */
  | { kind: 'left' }
  /** The connection ended before the answer did. */
  | { kind: 'broken'; reason: string };

/** Pieces that a slow sender makes of its body. */
const PIECES = 4;

/** Sends one request on a connection of its own, and returns how it ended. */
export async function send(origin: string, headers: object, operation: Operation, manner = POLITE): Promise<Outcome> {
  const { method, path, accept } = operation;
  const body = operation.body === undefined ? '' : JSON.stringify(operation.body);
  const request = httpRequest(origin + path, {
    method,
    agent: false,
    headers: {
      ...headers,
      ...(accept === undefined ? {} : { accept }),
      ...(body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    },
  });
  return new Promise((resolve) => {
    const end = (outcome: Outcome) => {
      clearTimeout(patience);
      clearTimeout(leaving);
      resolve(outcome);
      request.destroy();
    };
    const broken = (error: Error) =>
      end({ kind: 'broken', reason: (error as NodeJS.ErrnoException).code ?? error.message });
    const { patienceMs } = manner;
    const patience = setTimeout(() => end({ kind: 'broken', reason: `no answer in ${patienceMs} ms` }), patienceMs);
    const leaving = manner.leaveMs === null ? undefined : setTimeout(() => end({ kind: 'left' }), manner.leaveMs);
    request.on('error', broken);
    request.on('response', (response) => void read(response, manner.readPauseMs).then(end, broken));
    void write(request, Buffer.from(body), manner.sendPauseMs);
  });
}

async function write(request: ReturnType<typeof httpRequest>, body: Buffer, pauseMs: number): Promise<void> {
  const size = pauseMs === 0 ? body.length : Math.ceil(body.length / PIECES);
  for (let start = 0; start < body.length && !request.destroyed; start += size) {
    request.write(body.subarray(start, start + size));
    if (pauseMs > 0) await sleep(pauseMs);
  }
  request.end();
}

async function read(response: IncomingMessage, pauseMs: number): Promise<Outcome> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) {
    chunks.push(chunk);
    if (pauseMs > 0) await sleep(pauseMs);
  }
  const type = (response.headers['content-type'] ?? '').split(';')[0] ?? '';
  return { kind: 'answered', status: response.statusCode ?? 0, type, text: Buffer.concat(chunks).toString() };
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** What goes wrong with an answer. Byte counts are those of the answer's body, unless stated. */
export type Fault =
  /** The connection is reset after so many bytes. */
  | { kind: 'cut'; afterBytes: number }
  /** Nothing more comes after so many bytes, and the connection stays open. */
  | { kind: 'stall'; afterBytes: number }
  /** The lowest bit of the byte at this offset of the FILE is flipped. */
  | { kind: 'corrupt'; offset: number }
  /** The body ends early, properly closed. */
  | { kind: 'short'; afterBytes: number }
  | { kind: 'throttle'; bytesPerSecond: number }
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: unknown }
  /** The whole file comes although a range was asked for. */
  | { kind: 'no-ranges' }
  /** The test writes the answer itself. */
  | { kind: 'custom'; answer(request: IncomingMessage, response: ServerResponse): void };

export interface FaultRule {
  fault: Fault;
  /** Which requests: `api` is metadata, `resolve` the hub's file address, `content` the address that holds the bytes. */
  on: 'api' | 'resolve' | 'content';
  /** Only for this file; of `api`, `tree` is the list of files. */
  path?: string;
  /** How often; without end when absent. */
  times?: number;
}

const CHUNK = 16 * 1024;

/** Sends `body`, which begins at `fileOffset` of the file, with the fault that applies; tells `count` of all bytes. */
export async function sendWithFault(
  response: ServerResponse,
  body: Buffer,
  { fileOffset, fault, count }: { fileOffset: number; fault: Fault | null; count(bytes: number): void },
): Promise<void> {
  const bytes = fault?.kind === 'corrupt' ? flipBit(body, fault.offset - fileOffset) : body;
  const end = fault && 'afterBytes' in fault ? Math.min(fault.afterBytes, bytes.length) : bytes.length;
  let sent = 0;
  while (sent < end && !response.destroyed) {
    const chunk = bytes.subarray(sent, Math.min(sent + CHUNK, end));
    count(chunk.length);
    await new Promise<void>((resolve) => {
      response.write(chunk, () => resolve());
      response.once('close', resolve);
    });
    response.removeAllListeners('close');
    sent += chunk.length;
    if (fault?.kind === 'throttle') await sleep((chunk.length / fault.bytesPerSecond) * 1000);
  }
  if (end < bytes.length && fault?.kind === 'cut') response.destroy();
  else if (end < bytes.length && fault?.kind === 'stall') return;
  else response.end();
}

function flipBit(body: Buffer, at: number): Buffer {
  if (at < 0 || at >= body.length) return body;
  const copy = Buffer.from(body);
  copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
  return copy;
}

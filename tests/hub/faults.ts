import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** A fault of a response. Byte counts are those of its body, unless stated. */
export type Fault =
  /** Resets the connection after this many bytes. */
  | { kind: 'cut'; afterBytes: number }
  /** Sends nothing more after this many bytes, and keeps the connection open. */
  | { kind: 'stall'; afterBytes: number }
  /** Flips the lowest bit of the byte at this offset of the FILE. */
  | { kind: 'corrupt'; offset: number }
  /** Ends the body early, but closes it properly. */
  | { kind: 'short'; afterBytes: number }
  | { kind: 'throttle'; bytesPerSecond: number }
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: unknown }
  /** Sends the whole file though a range was requested. */
  | { kind: 'no-ranges' }
  /** The test writes the response itself. */
  | { kind: 'custom'; answer(request: IncomingMessage, response: ServerResponse): void };

export interface FaultRule {
  fault: Fault;
  /**
   * The affected requests: `api` is metadata, `resolve` the hub's file address, `content` the address that serves the
   * bytes.
   */
  on: 'api' | 'resolve' | 'content';
  /** Only for this file; of `api`, `tree` is the list of files. */
  path?: string;
  /** The number of times; without end if absent. */
  times?: number;
}

const CHUNK = 16 * 1024;

/**
 * Sends `body`, which begins at `fileOffset` of the file, with the fault that applies; reports all bytes to `count`.
 */
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

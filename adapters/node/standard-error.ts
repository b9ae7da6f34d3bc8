import { writeSync } from 'node:fs';
import { type DestinationStream, pino } from 'pino';
import { systemCode } from '../../runtime/store/disk-error.ts';

/**
 * Maximum total size in bytes of the lines that wait because standard error cannot be written. Further lines are
 * dropped and counted. A single line may be longer, because with `ASSAY_LOG_PROMPTS` it contains a prompt.
 */
const MAX_WAITING = 1024 * 1024;
const RETRY_MS = 10;
/** Milliseconds by which unwritten lines may delay the end of the process. */
const LAST_MS = 500;

/**
 * Returns a log destination for standard error that never throws and never blocks while the process runs. If the disk
 * is full or nothing reads the output, Pino's own destination throws, blocks, or (with `sync: false`) keeps the process
 * alive. Lines are written at once if possible, because a crash would lose waiting ones. Those that still wait when the
 * process ends delay its end by at most `LAST_MS`.
 */
export function standardError(): DestinationStream {
  let waiting: Buffer[] = [];
  let bytes = 0;
  let dropped = 0;
  let retry: NodeJS.Timeout | undefined;

  function add(line: Buffer): void {
    waiting.push(line);
    bytes += line.length;
  }

  function flush(): void {
    clearTimeout(retry);
    retry = undefined;
    try {
      for (let line = waiting[0]; line; line = waiting[0]) {
        // Node makes a pipe or socket non-blocking when `process.stderr` is first used.
        const written = writeSync(process.stderr.fd, line);
        bytes -= written;
        if (written < line.length) waiting[0] = line.subarray(written);
        else waiting.shift();
        if (waiting.length === 0 && dropped > 0) {
          add(dropNotice(dropped));
          dropped = 0;
        }
      }
    } catch (error) {
      if (systemCode(error) === 'EAGAIN') retry = setTimeout(flush, RETRY_MS).unref();
      else {
        dropped += waiting.length;
        waiting = [];
        bytes = 0;
      }
    }
  }

  process.on('exit', () => {
    const last = performance.now() + LAST_MS;
    for (flush(); waiting.length > 0 && performance.now() < last; flush()) pause(10);
  });

  return {
    write(text) {
      const line = Buffer.from(text);
      if (bytes > 0 && bytes + line.length > MAX_WAITING) dropped++;
      else add(line);
      if (!retry) flush();
    },
  };
}

function dropNotice(dropped: number): Buffer {
  const line = { level: pino.levels.values.warn, time: new Date().toISOString(), dropped, msg: 'log lines dropped' };
  return Buffer.from(`${JSON.stringify(line)}\n`);
}

/** Blocks the thread. Call it only at the end of the process, when nothing else runs. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

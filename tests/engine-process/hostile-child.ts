import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import koffi from 'koffi';
import { AssayError } from '../../lib/errors.ts';
import { endWithParent } from '../../runtime/process/end-with-parent.ts';
import { NO_LOAD } from '../../runtime/protocol/messages.ts';
import { type Channel, type PreparedWork, serveMessages } from '../../runtime/worker/serve.ts';

/*
 * An engine process that a hostile model has taken over: a request names what it tries, and the error says how far it
 * got. `native` is machine code of the model, which asks the C library instead of Node.
 */

const C = koffi.load(null);
const libc = {
  open: C.func('int open(const char *path, int flags)'),
  kill: C.func('int kill(int pid, int signal)'),
  socket: C.func('int socket(int domain, int type, int protocol)'),
  connect: C.func('int connect(int socket, const uint8_t *address, uint32_t length)'),
};

/** `sockaddr_in` of a port on 127.0.0.1 (ip(7)). */
const loopback = (port: number) => Uint8Array.from([2, 0, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);

const ATTACKS: Record<string, (argument: string) => unknown> = {
  read: (path) => readFileSync(path, 'utf8').length,
  write: (path) => writeFileSync(path, 'x'),
  spawn: () => process.getBuiltinModule('node:child_process').execFileSync('/bin/sh', ['-c', 'echo ran']).toString(),
  connect: (port) =>
    new Promise((resolve, reject) =>
      connect(Number(port), '127.0.0.1', () => resolve('connected')).on('error', reject),
    ),
  memory: (gigabytes) => {
    const held = Array.from({ length: Number(gigabytes) * 4 }, () => Buffer.alloc(2 ** 28, 1));
    return held.length;
  },
  'native read': (path) => succeeded(libc.open(path, 0)),
  'native write': (path) => succeeded(libc.open(path, 0o1101)),
  'native kill': (pid) => succeeded(libc.kill(Number(pid), 0)),
  'native connect': (port) => succeeded(libc.connect(libc.socket(2, 1, 0), loopback(Number(port)), 16)),
};

function succeeded(result: number): string {
  if (result < 0) throw new Error(`errno ${koffi.errno()}`);
  return 'succeeded';
}

function prepare(question: string): PreparedWork {
  return {
    promptTokens: 1,
    async run() {
      const [attack = '', argument = ''] = question.split(': ');
      let got: string;
      try {
        got = `got: ${await ATTACKS[attack]!(argument)}`;
      } catch (error) {
        got = `refused: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`;
      }
      throw new AssayError('engine_failed', got);
    },
  };
}

endWithParent();
serveMessages(
  {
    async load({ model }) {
      return {
        info: { model, device: 'CPU', maxPromptLen: 8, contextLength: 16 },
        // biome-ignore lint/correctness/useYield: its requests have one part
        *prepare(work) {
          return prepare(work.kind === 'tasks' ? questionOf(work.batch.tasks[0]) : '');
        },
        load: () => NO_LOAD,
      };
    },
    describe() {
      throw new AssayError('engine_failed', 'Nothing is read here.');
    },
    async compile() {
      throw new AssayError('engine_failed', 'Nothing is compiled here.');
    },
  },
  process as Channel,
);

function questionOf(task: { type: string; question?: string } | undefined): string {
  return task?.question ?? '';
}

import { type ChildProcess, fork } from 'node:child_process';
import { constants } from 'node:os';
import type { Logger } from 'pino';
import * as v from 'valibot';
import { killGroup, killTree, OWN_GROUP, processorMs, residentBytes } from './kill-tree.ts';
import { SilenceClock } from './silence-clock.ts';

/** Names the program to execute, and its arguments before the module to run, as `fork` accepts them. */
export interface Launch {
  execPath: string;
  execArgv: string[];
}

export interface ChildOptions<Received> {
  /** Module that the process runs (`childEntry`). */
  entry: URL;
  args?: readonly string[];
  /** Program that starts the process; the default is this Node without its flags, which must not reach the child. */
  launch?: Launch;
  /** Environment variables of the process, in addition to `childEnvironment` and `NO_TELEMETRY`. */
  environment?: Readonly<Record<string, string>>;
  /** Schema of the messages that the process sends. A message that does not match ends the process. */
  received: v.GenericSchema<unknown, Received>;
  /** Logs lines that the process writes to stdout and stderr as `<name> wrote`; without it, they are dropped. */
  output?: { log: Pick<Logger, 'warn'>; name: string };
  /** Resident bytes of the process and its descendants above which it is killed; absent: any number. */
  memoryLimitBytes?: number;
  /** Bytes of the largest message that the process may send. */
  maxMessageBytes?: number;
  /** Bytes that the process may send in a second in the long run, and `BURST_S` times as many at once; absent: any. */
  maxBytesASecond?: number;
  /** Milliseconds between two checks of the process's memory and of its silence. */
  watchMs: number;
}

/** States how long a process may send no message before it is killed. */
export interface SilenceLimit {
  /** Milliseconds, measured as `SilenceClock.exceeds` does. */
  ms: number;
  /** Completes the sentence "The process … for 10 s.". */
  failedTo: string;
  /** True to measure wall time instead, because callers wait for the process to end. */
  wall?: boolean;
}

export interface ChildEvents<Received> {
  message(message: Received): void;
  /**
   * Receives the end of the process, once. `reason` completes the sentence "The process …"; `silent` tells that it was
   * killed for its silence.
   */
  exit(reason: string, silent: boolean): void;
}

/** Maximum number of characters to log of one line that the process writes to stdout or stderr. */
const MAX_LINE = 2_000;
/** Maximum number of lines to log in a second, so that the process cannot fill the log. */
const MOST_LINES = 200;
const TOO_MANY = `(more than ${MOST_LINES} lines in a second; the others are dropped)`;
/** Delay of a check, in milliseconds, above which the server itself is assumed to have been suspended. */
const STALL_MS = 2_000;
/** Default of `maxMessageBytes`: more than the pixels of the largest image. */
const MAX_MESSAGE_BYTES = 128 * 1024 * 1024;
/** Messages that a process may send in a second in the long run, and in how many seconds it may send them at once. */
const MAX_MESSAGES_A_SECOND = 10_000;
const BURST_S = 4;
/** Messages of a process after which other work of the server has a turn. */
const MESSAGES_A_TURN = 256;

/**
 * Runs a program of this package in its own process group, because native code and untrusted files may crash or hang
 * it: validates its messages, and kills it if it stays silent or needs too much memory.
 */
export class Child<Sent extends object, Received> {
  /** Resident bytes, as of the last check; null before the first, and where the system does not report them. */
  rssBytes: number | null = null;
  readonly #process: ChildProcess;
  readonly #options: ChildOptions<Received>;
  readonly #events: ChildEvents<Received>;
  readonly #watch: NodeJS.Timeout;
  readonly #silence = new SilenceClock(performance.now());
  #limit: SilenceLimit | null = null;
  #checking = false;
  #lastCheckAt = performance.now();
  #killed: { reason: string; silent: boolean } | null = null;
  #gone = false;
  /** Lines that the process has written in the second that began at `since`. */
  #wrote = { since: 0, lines: 0 };
  /** Bytes that the process has sent since its last whole message, and whole messages since the last turn. */
  #bytesOfMessage = 0;
  #messagesOfTurn = 0;
  readonly #messages = new Level(MAX_MESSAGES_A_SECOND);
  readonly #bytes: Level;

  constructor(options: ChildOptions<Received>, events: ChildEvents<Received>) {
    this.#options = options;
    this.#events = events;
    const { entry, args = [], launch = { execPath: process.execPath, execArgv: [] }, environment, output } = options;
    const stream = output ? 'pipe' : 'ignore';
    this.#process = fork(entry, args, {
      serialization: 'advanced',
      stdio: ['ignore', stream, stream, 'ipc'],
      ...launch,
      env: { ...childEnvironment(process.env), ...NO_TELEMETRY, ...environment },
      ...OWN_GROUP,
    });
    this.#process.on('exit', () => killGroup(this.#process));
    this.#process.on('message', (message) => this.#onMessage(message));
    const { maxMessageBytes: most = MAX_MESSAGE_BYTES, maxBytesASecond = Number.POSITIVE_INFINITY } = options;
    this.#bytes = new Level(maxBytesASecond);
    onChannelRead(this.#process, {
      read: (bytes) => {
        if (this.#gone || this.#killed) return false;
        this.#bytesOfMessage += bytes;
        if (this.#bytesOfMessage > most) this.kill(`sent a message of more than ${megabytes(most)}`);
        if (this.#bytes.exceeds(bytes)) this.kill(`sent more than ${megabytes(maxBytesASecond)} a second`);
        return this.#killed === null;
      },
      handled: () => {
        if (this.#messagesOfTurn < MESSAGES_A_TURN) return false;
        this.#messagesOfTurn = 0;
        return true;
      },
    });
    this.#process.on('error', (error) => this.#exited(`could not be started (${error.message})`));
    this.#process.on('exit', (code, signal) => this.#exited(ending(code, signal ?? signalIn(code))));
    for (const one of [this.#process.stdout, this.#process.stderr]) {
      one?.setEncoding('utf8').on('data', (text: string) => this.#logLines(text));
      one?.on('error', () => {});
    }
    this.#watch = setInterval(() => void this.#check(), options.watchMs).unref();
  }

  /** The operating system's id of the process; undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Milliseconds since the last message of the process. */
  get silentMs(): number {
    return this.#silence.silentMs(performance.now());
  }

  /** Tells whether the process has said nothing for `limitMs`, measured as `SilenceClock.exceeds` does. */
  isSilent(limitMs: number): boolean {
    return this.#silence.exceeds(limitMs, performance.now());
  }

  /**
   * Sends a message to the process. Drops it if the process has ended, because `exit` then informs the owner.
   *
   * @param written called once the process has read the message but for the last few hundred KB, or has ended
   */
  send(message: Sent, written: () => void = () => {}): void {
    if (this.#process.connected) this.#process.send(message, written);
    else written();
  }

  /** Kills the process at once; `exit` is then called with the reason of the first `kill`. */
  kill(reason: string, silent = false): void {
    this.#killed ??= { reason, silent };
    killTree(this.#process);
  }

  /** Sets how long the process may be silent; null: as long as it likes. Silence counts from the first limit on. */
  limitSilence(limit: SilenceLimit | null): void {
    if (this.#limit === null) this.#silence.heard(performance.now());
    this.#limit = limit;
  }

  #onMessage(message: unknown): void {
    this.#bytesOfMessage = 0;
    this.#messagesOfTurn++;
    // Messages of a process that is being killed are ignored.
    if (this.#gone || this.#killed) return;
    if (this.#messages.exceeds(1)) {
      this.kill(`sent more than ${MAX_MESSAGES_A_SECOND} messages a second`);
      return;
    }
    this.#silence.heard(performance.now());
    const checked = v.safeParse(this.#options.received, message);
    if (checked.success) {
      this.received(checked.output);
      return;
    }
    const [issue] = checked.issues;
    const where = issue.path?.map(({ key }) => String(key)).join('.') ?? '';
    this.kill(`sent a message that is not valid (${where}: ${issue.expected})`);
  }

  #exited(reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    clearInterval(this.#watch);
    killTree(this.#process);
    this.exited(this.#killed?.reason ?? reason, this.#killed?.silent ?? false);
  }

  /** Passes a message on; subclasses take theirs before. */
  protected received(message: Received): void {
    this.#events.message(message);
  }

  /** Reports the end of the process; subclasses add what else it ends. */
  protected exited(reason: string, silent: boolean): void {
    this.#events.exit(reason, silent);
  }

  async #check(): Promise<void> {
    const { watchMs, memoryLimitBytes } = this.#options;
    // A starved machine may need longer than `watchMs` to read the figures.
    if (this.#checking || (this.#limit === null && memoryLimitBytes === undefined)) return;
    this.#checking = true;
    const [usedMs, rssBytes] = await Promise.all([processorMs(this.pid), residentBytes(this.pid)]);
    this.#checking = false;
    if (this.#gone) return;
    const now = performance.now();
    // If the server itself was suspended (a debugger, Ctrl-Z), it has not read the child's messages yet, so the child
    // was not silent.
    if (now - this.#lastCheckAt > 2 * watchMs + STALL_MS) this.#silence.heard(now);
    this.#lastCheckAt = now;
    this.#silence.read(now, usedMs);
    const silentMs = this.#silence.silentMs(now);
    if (this.#limit && (this.#limit.wall ? silentMs > this.#limit.ms : this.#silence.exceeds(this.#limit.ms, now))) {
      this.kill(`${this.#limit.failedTo} for ${Math.round(silentMs / 1000)} s`, true);
      return;
    }
    this.rssBytes = rssBytes ?? this.rssBytes;
    if (this.rssBytes !== null && memoryLimitBytes !== undefined && this.rssBytes > memoryLimitBytes) {
      this.kill(`used ${megabytes(this.rssBytes)} of memory, more than the ${megabytes(memoryLimitBytes)} it may`);
    }
  }

  #logLines(text: string): void {
    const { output } = this.#options;
    const now = performance.now();
    if (now - this.#wrote.since > 1_000) this.#wrote = { since: now, lines: 0 };
    for (const whole of text.split('\n')) {
      if (whole.trim() === '') continue;
      if (this.#wrote.lines++ > MOST_LINES) return;
      const line = this.#wrote.lines > MOST_LINES ? TOO_MANY : whole.slice(0, MAX_LINE);
      output?.log.warn({ pid: this.pid, line }, `${output.name} wrote`);
    }
  }
}

/**
 * Watches what is read from a process's message channel. Node collects a message until it is complete, however long the
 * process says that it is, and reads as long as there is something; there is no public way to see or to pause that.
 *
 * @param read receives the number of bytes before their messages are; returns false to drop them
 * @param handled called after these messages; returns true to let other work have a turn before more is read
 */
function onChannelRead(
  child: ChildProcess,
  { read, handled }: { read(bytes: number): boolean; handled(): boolean },
): void {
  const symbol = Object.getOwnPropertySymbols(child).find(({ description }) => description === 'kChannelHandle');
  // Casts: the handle is not declared. `child.test.ts` notices if a version of Node has another one.
  const handle = symbol && (child as unknown as Record<symbol, ChannelHandle | null>)[symbol];
  if (!handle) return;
  const { onread } = handle;
  handle.onread = function (this: unknown, data) {
    // Without data, the channel ends.
    if (data && !read(data.byteLength)) return;
    onread.call(this, data);
    // Node passes the messages on in ticks before this one.
    process.nextTick(() => {
      if (!handled()) return;
      handle.readStop();
      setImmediate(() => handle.readStart());
    });
  };
}

interface ChannelHandle {
  onread(data?: ArrayBuffer): void;
  readStop(): void;
  readStart(): void;
}

/** Counts what a process sends, less what it may send in a second. */
class Level {
  readonly #aSecond: number;
  #level = 0;
  #at = performance.now();

  constructor(aSecond: number) {
    this.#aSecond = aSecond;
  }

  /** Adds an amount. Returns true if it is more than the process may send at once. */
  exceeds(amount: number): boolean {
    const now = performance.now();
    this.#level = Math.max(0, this.#level - ((now - this.#at) / 1000) * this.#aSecond) + amount;
    this.#at = now;
    return this.#level > BURST_S * this.#aSecond;
  }
}

/**
 * Returns the module of a child process: TypeScript in the repository, JavaScript in the published package.
 *
 * @param path path without its extension, relative to `from`
 * @param from `import.meta.url` of the caller
 */
export function childEntry(path: string, from: string): URL {
  return new URL(`${path}${from.endsWith('.ts') ? '.ts' : '.js'}`, from);
}

/** Returns the words that complete the sentence "The process …" for a process that has ended. */
function ending(code: number | null, signal: string | null): string {
  // V8 aborts (SIGABRT) when its heap is full.
  if (signal === 'SIGABRT') return 'ran out of memory for its own data (SIGABRT)';
  return signal ? `was ended by ${signal}` : `ended with code ${code}`;
}

/**
 * Returns the name of the signal that ended a program inside a shell or bwrap, which then exit with 128 plus its
 * number. Returns null for other exit codes.
 */
function signalIn(code: number | null): string | null {
  return Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0] ?? null;
}

const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`;

/**
 * Variables that programs and system libraries need: to find files, and to write numbers, times and texts. Where Node
 * keeps compiled code is one of them: an isolated process cannot write there, so it does without.
 */
const SYSTEM = [
  'PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|LC_.*|XDG_CACHE_HOME|NODE_COMPILE_CACHE',
  'LD_LIBRARY_PATH|LD_PRELOAD|DYLD_.*|GLIBC_TUNABLES|MALLOC_.*|FAKETIME.*',
  'SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAMDATA|NUMBER_OF_PROCESSORS',
];
/** Settings of onnxruntime, of threads and mathematics, and of the drivers of GPUs and NPUs. */
const DRIVERS = [
  'ORT_.*|OMP_.*|KMP_.*|GOMP_.*|MKL_.*|OPENBLAS_.*|DNNL_.*|ONEDNN_.*',
  'CUDA_.*|CUDNN_.*|NVIDIA_.*|HIP_.*|HSA_.*|ROCR_.*|ROCM_.*|MIGRAPHX_.*|AMD_.*',
  'ZE_.*|ZES_.*|SYCL_.*|ONEAPI_.*|OPENVINO_.*|OV_.*|NPU_.*|QNN_.*|ADSP_.*|XLNX_.*|XILINX_.*|XRT_.*|OCL_.*|VK_.*',
];
const PASSED = new RegExp(`^(${[...SYSTEM, ...DRIVERS].join('|')})$`, 'iu');
/** Names of drivers' variables that hold a secret nevertheless. */
const SECRET = /token|key|secret|password|credential/iu;

/**
 * Returns the environment for a process that handles untrusted templates, model files or media: only variables that the
 * system, onnxruntime or a driver reads. Others may hold secrets under any name: an address with a password, an
 * authorization header, the socket of an agent.
 */
export function childEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => PASSED.test(name) && !SECRET.test(name)));
}

/**
 * Environment variables for every process that loads onnxruntime. Without them, onnxruntime's builds for Linux and
 * macOS since 1.30 send events and a machine id to their publisher over HTTPS. Source:
 * onnxruntime/core/platform/posix/telemetry.cc.
 */
const NO_TELEMETRY = { ORT_DISABLE_TELEMETRY: '1' };

import { type ChildProcess, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import type { Logger } from 'pino';
import * as v from 'valibot';
import { NO_TELEMETRY } from '../device/no-telemetry.ts';
import {
  type EngineLoad,
  type EngineMemory,
  FromEngine,
  NO_LOAD,
  type Phase,
  type ToEngine,
} from '../protocol/messages.ts';
import type { Launch } from './isolation/isolation.ts';

export interface ChildOptions {
  /** Module that the process runs; tests pass their own. */
  entry: URL;
  log: Logger;
  /** Most resident bytes of the process and its own children; above it is killed. */
  memoryLimitBytes: number;
  /** Milliseconds between two checks of its memory and of its last message. */
  watchMs: number;
  patience: Patience;
  /** Returns the program and the arguments that start the process, given flags for Node (`Isolation.launch`). */
  launch(nodeFlags: readonly string[]): Launch;
}

/** Holds, for each phase, the milliseconds without a message after which the process counts as hung and is killed. */
export type Patience = Readonly<Record<Phase | 'start', number>>;

/** Default patience in milliseconds. That of `open` and `compile` depends on the model's size (`model-limits.ts`). */
export const PATIENCE = {
  /** From the start until the process is ready for messages. */
  start: 60_000,
  /** Work on tokenizer, template or grammars: a large vocabulary takes three seconds on a busy machine. */
  text: 10_000,
  /** One step of the model. */
  step: 120_000,
} as const;

/** Patience once callers wait for the process to end, so that a stuck one ends soon. */
const SHORT_PATIENCE: Partial<Patience> = { text: 2_000 };

/** Descriptions of what a silent process failed to do, by phase, for the log and the caller. */
const FAILED_TO: Readonly<Record<Phase | 'start', string>> = {
  start: 'did not start',
  open: 'did not open the model',
  text: "did not get on with the model's tokenizer or chat template",
  step: 'did not finish a step of the model',
  compile: 'did not get on with compiling',
};

/**
 * Largest JavaScript heap of the process in MiB. It holds mostly the tokenizer; the largest published vocabulary needs
 * half of it. Weights and KV are outside the heap.
 */
const HEAP_MB = 1024;

export interface ChildEvents {
  message(message: FromEngine): void;
  /** Receives the end of the process, once. `reason` completes the sentence "The engine process …". */
  exit(reason: string): void;
}

/** Module of the engine process: TypeScript in the repository, JavaScript in the published package. */
export const ENGINE_ENTRY = new URL(
  `../worker/engine-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
);

/**
 * Largest half of V8's young generation in MB. V8's own choice, 32 for this heap, grows in steps under load and keeps
 * its pages: 130 MB of the process after a quarter of an hour. Sixteen was Node's default for years.
 */
const SEMI_SPACE_MB = 16;

/**
 * Configures glibc's allocator; other systems ignore it. Source: glibc manual, "Memory Allocation Tunables".
 * - `hugetlb`: asks for huge pages for weights and KV, which every step reads as a whole; measured, a token takes a
 *   tenth less time.
 * - `mmap_threshold`: a block of 2 MiB or more, such as the KV of a sequence, is mapped alone and returned when freed.
 *   Without it glibc raises the threshold to the largest block freed, and blocks of many sizes fragment its heap.
 */
export const ENGINE_MEMORY = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=2097152' };

/** Most characters of a line of native code's output that are logged. */
const MAX_LINE = 2_000;

/** Delay of a check, in milliseconds, from which the server itself is assumed to have been suspended. */
const STALL_MS = 2_000;

/** Runs one engine process: validates its messages, limits its memory, and kills it if it stops responding. */
export class Child {
  rssBytes: number | null = null;
  /** JavaScript heap and buffers, as of the last heartbeat; null before the first. */
  memory: EngineMemory | null = null;
  /** Number of running and waiting jobs, and KV cells in use, as of the last heartbeat. */
  load: EngineLoad = NO_LOAD;
  readonly #process: ChildProcess;
  readonly #options: ChildOptions;
  readonly #events: ChildEvents;
  readonly #watch: NodeJS.Timeout;
  #patience: Patience;
  #phase: Phase | 'start' = 'start';
  #lastMessageAt = performance.now();
  #lastCheckAt = performance.now();
  #reason: string | null = null;
  #gone = false;

  constructor(options: ChildOptions, events: ChildEvents) {
    this.#options = options;
    this.#events = events;
    this.#patience = options.patience;
    this.#process = fork(options.entry, [], {
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // `execArgv` is set, so the child does not inherit this process's flags: a debugger or test runner must not
      // attach to it.
      ...options.launch([`--max-old-space-size=${HEAP_MB}`, `--max-semi-space-size=${SEMI_SPACE_MB}`]),
      env: { ...ENGINE_MEMORY, ...withoutSecrets(process.env), ...NO_TELEMETRY },
    });
    this.#process.on('message', (message) => this.#onMessage(message));
    this.#process.on('error', (error) => this.#exited(`could not be started (${error.message})`));
    this.#process.on('exit', (code, signal) => this.#exited(ending(code, signal ?? signalIn(code))));
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.#logLines(text));
      stream?.on('error', () => {});
    }
    this.#watch = setInterval(() => void this.#check(), options.watchMs).unref();
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Sends a message to the process. Drops it if the process has ended, because `exit` then informs the owner. */
  send(message: ToEngine): void {
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  /** Kills the process at once; `exit` is then called with the reason. */
  kill(reason: string): void {
    this.#reason ??= reason;
    this.#process.kill('SIGKILL');
  }

  /** Shortens the patience, because callers now wait for this process to end. */
  hurry(): void {
    this.#patience = { ...this.#patience, ...SHORT_PATIENCE };
  }

  #onMessage(message: unknown): void {
    // Messages of a process that is being killed are ignored.
    if (this.#gone || this.#reason !== null) return;
    this.#lastMessageAt = performance.now();
    const checked = v.safeParse(FromEngine, message);
    if (!checked.success) {
      const where = checked.issues[0].path?.map(({ key }) => String(key)).join('.') ?? '';
      this.kill(`sent a message that is not valid (${where}: ${checked.issues[0].expected})`);
      return;
    }
    if (checked.output.type === 'heartbeat') {
      const { type: _, rssBytes, memory, ...load } = checked.output;
      this.rssBytes = rssBytes;
      this.memory = memory;
      this.load = load;
    }
    if (checked.output.type === 'phase') this.#phase = checked.output.phase;
    this.#events.message(checked.output);
  }

  #exited(reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    clearInterval(this.#watch);
    this.#events.exit(this.#reason ?? reason);
  }

  async #check(): Promise<void> {
    const now = performance.now();
    // If this process itself was suspended (a debugger, Ctrl-Z), messages of the child are still unread: it was not
    // silent.
    if (now - this.#lastCheckAt > 2 * this.#options.watchMs + STALL_MS) this.#lastMessageAt = now;
    this.#lastCheckAt = now;
    const silentMs = now - this.#lastMessageAt;
    if (silentMs > this.#patience[this.#phase]) {
      this.kill(`${FAILED_TO[this.#phase]} for ${Math.round(silentMs / 1000)} s`);
      return;
    }
    this.rssBytes = (await residentBytes(this.pid)) ?? this.rssBytes;
    const limit = this.#options.memoryLimitBytes;
    if (this.rssBytes !== null && this.rssBytes > limit) {
      this.kill(`used ${megabytes(this.rssBytes)} of memory, more than the ${megabytes(limit)} it may`);
    }
  }

  #logLines(text: string): void {
    for (const line of text.split('\n')) {
      if (line.trim()) this.#options.log.warn({ pid: this.pid, line: line.slice(0, MAX_LINE) }, 'engine process wrote');
    }
  }
}

/** Describes how a process ended, for the sentence "The engine process …". */
function ending(code: number | null, signal: string | null): string {
  // V8 aborts (SIGABRT) when its heap is full.
  if (signal === 'SIGABRT') return 'ran out of memory for its own data (SIGABRT)';
  return signal ? `was ended by ${signal}` : `ended with code ${code}`;
}

/**
 * Returns the signal that ended a program inside a shell or bwrap, which then exit with 128 plus its number. Returns
 * null for other exit codes.
 */
function signalIn(code: number | null): string | null {
  return Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0] ?? null;
}

/**
 * Returns the environment without tokens and keys, because the child runs untrusted templates and model files, and
 * without flags for Node (`NODE_OPTIONS`), because no debugger or other module may attach to it.
 */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/token|key|secret|password|credential|^NODE_OPTIONS$/iu.test(name)),
  );
}

/**
 * Returns the resident bytes of a process and all its descendants on Linux, even during a step of the model. Returns
 * null on other systems, where the heartbeat reports them.
 */
async function residentBytes(pid: number | undefined): Promise<number | null> {
  if (process.platform !== 'linux' || pid === undefined) return null;
  const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => null);
  const [status, children] = await Promise.all([read('status'), read(`task/${pid}/children`)]);
  const kilobytes = /^VmRSS:\s*(\d+) kB$/mu.exec(status ?? '')?.[1];
  if (kilobytes === undefined || children === null) return null;
  const below = await Promise.all(
    children
      .trim()
      .split(' ')
      .filter(Boolean)
      .map((child) => residentBytes(Number(child))),
  );
  return below.reduce<number>((sum, bytes) => sum + (bytes ?? 0), Number(kilobytes) * 1024);
}

const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`;

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
  /** Module to run; tests pass one of their own. */
  entry: URL;
  log: Logger;
  /** Resident bytes above which the process is killed. */
  memoryLimitBytes: number;
  /** Milliseconds between two checks of memory and silence. */
  watchMs: number;
  patience: Patience;
  /** Returns the command that starts the process, given Node's flags (`Isolation.launch`). */
  launch(nodeFlags: readonly string[]): Launch;
}

/** Holds the milliseconds without a message after which the process counts as hung, by phase. */
export type Patience = Readonly<Record<Phase | 'start', number>>;

/** Default patience. That of `open` and `compile` follows from the model's size (`model-limits.ts`). */
export const PATIENCE = {
  /** Until the process is ready for messages. */
  start: 60_000,
  /** Tokenizer, template and grammars: a large vocabulary takes three seconds on a busy machine. */
  text: 10_000,
  /** One step of the model. */
  step: 120_000,
} as const;

/** Patience while callers wait for the process to end, so that one that is stuck ends soon. */
const HURRIED: Partial<Patience> = { text: 2_000 };

/** Says what a silent process did not do, for the log and the caller. */
const SILENT: Readonly<Record<Phase | 'start', string>> = {
  start: 'did not start',
  open: 'did not open the model',
  text: "did not get on with the model's tokenizer or chat template",
  step: 'did not finish a step of the model',
  compile: 'did not get on with compiling',
};

/**
 * Largest heap of the process in MB. It holds mostly the tokenizer: the largest published vocabulary takes half of it.
 * Weights and KV are outside the heap.
 */
const HEAP_MB = 1024;

export interface ChildEvents {
  message(message: FromEngine): void;
  /** Receives the end of the process, once. `reason` completes the sentence "The engine process …". */
  exit(reason: string): void;
}

/** Entry point of the engine process: TypeScript in the repository, JavaScript in the package. */
export const ENGINE_ENTRY = new URL(
  `../worker/engine-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
);

/**
 * Makes glibc ask for huge pages for weights and KV, which every step reads as a whole: measured, a token takes a tenth
 * less time. Other systems ignore it. Source: glibc manual, "Memory Allocation Tunables".
 */
export const HUGE_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };

/** Characters of a line that are logged when native code writes to its output. */
const MAX_LINE = 2_000;

/** Delay of a check, in milliseconds, that shows that this process itself was stopped. */
const STALL_MS = 2_000;

/**
 * Runs one engine process: checks its messages, limits its memory, and ends it when it stops responding.
 */
export class Child {
  rssBytes: number | null = null;
  /** The memory that JavaScript owns, as of the last heartbeat. */
  memory: EngineMemory | null = null;
  /** The work in the process, as of its last heartbeat. */
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
      // Without the flags of this process: a debugger or a test runner must not attach to the child.
      ...options.launch([`--max-old-space-size=${HEAP_MB}`]),
      env: { ...HUGE_PAGES, ...withoutSecrets(process.env), ...NO_TELEMETRY },
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

  /** Sends a message. Drops it when the process is gone: `exit` tells the owner. */
  send(message: ToEngine): void {
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  /** Ends the process at once; `exit` follows with the reason. */
  kill(reason: string): void {
    this.#reason ??= reason;
    this.#process.kill('SIGKILL');
  }

  /** Shortens the patience, because callers wait for the end of this process. */
  hurry(): void {
    this.#patience = { ...this.#patience, ...HURRIED };
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
    // After a stop of this process itself (a debugger, Ctrl-Z) there are unread messages: the child was not silent.
    if (now - this.#lastCheckAt > 2 * this.#options.watchMs + STALL_MS) this.#lastMessageAt = now;
    this.#lastCheckAt = now;
    const silentMs = now - this.#lastMessageAt;
    if (silentMs > this.#patience[this.#phase]) {
      this.kill(`${SILENT[this.#phase]} for ${Math.round(silentMs / 1000)} s`);
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

/** Says how a process ended. */
function ending(code: number | null, signal: string | null): string {
  // V8 sends SIGABRT when its heap is full.
  if (signal === 'SIGABRT') return 'ran out of memory for its own data (SIGABRT)';
  return signal ? `was ended by ${signal}` : `ended with code ${code}`;
}

/** Returns the signal that ended a program run by a shell or bwrap, which exit with 128 plus its number. */
function signalIn(code: number | null): string | null {
  return Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0] ?? null;
}

/**
 * Removes tokens and keys from the environment, because the child runs untrusted templates and model files. Removes
 * flags for Node
 * (`NODE_OPTIONS`), too: a debugger or another module must not attach to it.
 */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/token|key|secret|password|credential|^NODE_OPTIONS$/iu.test(name)),
  );
}

/** Reads the resident memory on Linux, also during a step; null elsewhere, where the heartbeat reports it. */
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

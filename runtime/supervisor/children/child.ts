import { type ChildProcess, fork } from 'node:child_process';
import { constants } from 'node:os';
import type { Logger } from 'pino';
import * as v from 'valibot';
import { NO_TELEMETRY } from '../../device/no-telemetry.ts';
import { childEnvironment } from '../../process/child-environment.ts';
import { processorMs, residentBytes } from '../../process/process-tree.ts';
import { SilenceClock } from '../../process/silence-clock.ts';
import {
  type EngineLoad,
  type EngineMemory,
  FromEngine,
  NO_LOAD,
  type Phase,
  type ToEngine,
} from '../../protocol/messages.ts';
import type { Launch } from '../isolation/isolation.ts';
import { killGroup, killTree, OWN_GROUP } from '../isolation/kill-tree.ts';
import { ENGINE_MEMORY, HEAP_FLAGS } from './child-memory.ts';
import { FAILED_TO, SHORT_SILENCE_LIMITS, type SilenceLimits } from './silence-limits.ts';

export interface ChildOptions {
  /** Module that the process runs; tests pass their own. */
  entry: URL;
  log: Logger;
  /** Resident bytes of the process and its own children above which it is killed. */
  memoryLimitBytes: number;
  /** Milliseconds between two checks of the process's memory and of the time of its last message. */
  watchMs: number;
  silenceLimits: SilenceLimits;
  /** Environment variables of the process, in addition to `childEnvironment`. */
  environment: Readonly<Record<string, string>>;
  /** Returns the program and the arguments that start the process, given flags for Node (`Isolation.launch`). */
  launch(nodeFlags: readonly string[]): Launch;
}

export interface ChildEvents {
  message(message: FromEngine): void;
  /** Receives the end of the process, once. `reason` completes the sentence "The engine process …". */
  exit(reason: string): void;
}

/** Module of the engine and compile processes: TypeScript in the repository, JavaScript in the published package. */
export const ENGINE_ENTRY = new URL(
  `../../worker/engine-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
);

/** Maximum number of characters to log of one line that the process writes to stdout or stderr. */
const MAX_LINE = 2_000;

/** Silence in milliseconds, measured as `SilenceClock.exceeds` does, after which a process counts as not responding. */
const UNRESPONSIVE_MS = 4_000;

/** Delay of a check, in milliseconds, above which the server itself is assumed to have been suspended. */
const STALL_MS = 2_000;

/**
 * Runs one engine or compile process: validates its messages, and kills it if it exceeds its memory limit or stops
 * responding.
 */
export class Child {
  /** Resident bytes, as of the last check or heartbeat; null before the first. */
  rssBytes: number | null = null;
  /** JavaScript heap and buffers, as of the last heartbeat; null before the first. */
  memory: EngineMemory | null = null;
  /** Number of running and waiting jobs, and KV cells in use, as of the last heartbeat; `NO_LOAD` before the first. */
  load: EngineLoad = NO_LOAD;
  readonly #process: ChildProcess;
  readonly #options: ChildOptions;
  readonly #events: ChildEvents;
  readonly #watch: NodeJS.Timeout;
  #silenceLimits: SilenceLimits;
  #phase: Phase | 'start' = 'start';
  readonly #silence = new SilenceClock(performance.now());
  #hurried = false;
  #checking = false;
  #lastCheckAt = performance.now();
  #reason: string | null = null;
  #gone = false;

  constructor(options: ChildOptions, events: ChildEvents) {
    this.#options = options;
    this.#events = events;
    this.#silenceLimits = options.silenceLimits;
    this.#process = fork(options.entry, [], {
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // `launch` sets `execArgv`, so the child does not inherit this process's flags: a debugger or test runner must
      // not attach to it.
      ...options.launch(HEAP_FLAGS),
      env: { ...ENGINE_MEMORY, ...childEnvironment(process.env), ...NO_TELEMETRY, ...options.environment },
      ...OWN_GROUP,
    });
    this.#process.on('exit', () => killGroup(this.#process));
    this.#process.on('message', (message) => this.#onMessage(message));
    this.#process.on('error', (error) => this.#exited(`could not be started (${error.message})`));
    this.#process.on('exit', (code, signal) => this.#exited(ending(code, signal ?? signalIn(code))));
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.#logLines(text));
      stream?.on('error', () => {});
    }
    this.#watch = setInterval(() => void this.#check(), options.watchMs).unref();
  }

  /** The operating system's id of the process; undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Milliseconds since the last message of the process, which sends a heartbeat every half second. */
  get silentMs(): number {
    return this.#silence.silentMs(performance.now());
  }

  /** True if the process has said nothing for some seconds although it could have. */
  get unresponsive(): boolean {
    return this.#silence.exceeds(UNRESPONSIVE_MS, performance.now());
  }

  /** Sends a message to the process. Drops it if the process has ended, because `exit` then informs the owner. */
  send(message: ToEngine): void {
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  /** Kills the process at once; `exit` is then called with the reason of the first `kill`. */
  kill(reason: string): void {
    this.#reason ??= reason;
    killTree(this.#process);
  }

  /**
   * Applies `SHORT_SILENCE_LIMITS`, and measures silence in wall time, because callers now wait for the process to end.
   */
  hurry(): void {
    this.#hurried = true;
    this.#silenceLimits = { ...this.#silenceLimits, ...SHORT_SILENCE_LIMITS };
  }

  #onMessage(message: unknown): void {
    // Messages of a process that is being killed are ignored.
    if (this.#gone || this.#reason !== null) return;
    this.#silence.heard(performance.now());
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
    killTree(this.#process);
    this.#events.exit(this.#reason ?? reason);
  }

  async #check(): Promise<void> {
    // A starved machine may need longer than `watchMs` to read the figures.
    if (this.#checking) return;
    this.#checking = true;
    const [usedMs, rssBytes] = await Promise.all([processorMs(this.pid), residentBytes(this.pid)]);
    this.#checking = false;
    if (this.#gone) return;
    const now = performance.now();
    // If the server itself was suspended (a debugger, Ctrl-Z), it has not read the child's messages yet, so the child
    // was not silent.
    if (now - this.#lastCheckAt > 2 * this.#options.watchMs + STALL_MS) this.#silence.heard(now);
    this.#lastCheckAt = now;
    this.#silence.read(now, usedMs);
    const [silenceLimit, silentMs] = [this.#silenceLimits[this.#phase], this.#silence.silentMs(now)];
    if (this.#hurried ? silentMs > silenceLimit : this.#silence.exceeds(silenceLimit, now)) {
      this.kill(`${FAILED_TO[this.#phase]} for ${Math.round(silentMs / 1000)} s`);
      return;
    }
    this.rssBytes = rssBytes ?? this.rssBytes;
    const limit = this.#options.memoryLimitBytes;
    if (this.rssBytes !== null && this.rssBytes > limit) {
      this.kill(`used ${megabytes(this.rssBytes)} of memory, more than the ${megabytes(limit)} it may`);
    }
  }

  #logLines(text: string): void {
    for (const line of text.split('\n')) {
      if (line.trim())
        this.#options.log.warn({ pid: this.pid, line: line.slice(0, MAX_LINE) }, 'engine or compile process wrote');
    }
  }
}

/** Returns the words that complete the sentence "The engine process …" for a process that has ended. */
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

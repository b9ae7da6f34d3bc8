import { type ChildProcess, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import type { Logger } from 'pino';
import * as v from 'valibot';
import { NO_TELEMETRY } from '../device/no-telemetry.ts';
import { FromEngine, type Phase, type ToEngine } from '../protocol/messages.ts';
import type { Launch } from './isolation/isolation.ts';

export interface ChildOptions {
  /** The module to run; the engine's own unless a test brings another. */
  entry: URL;
  log: Logger;
  /** Resident bytes above which the process is killed. */
  memoryLimitBytes: number;
  /** Milliseconds between two looks at memory and silence. */
  watchMs: number;
  patience: Patience;
  /** How the process is started, given Node's flags (`Isolation.launch`). */
  launch(nodeFlags: readonly string[]): Launch;
}

/** Milliseconds without a message after which the process counts as hung, by what it does. */
export type Patience = Readonly<Record<Phase | 'start', number>>;

/** Where the model decides how long it takes (`open`, `compile`), its size does (`model-limits.ts`). */
export const PATIENCE = {
  /** Until the process listens. */
  start: 60_000,
  /** Tokenizer, template and grammars: a large vocabulary takes three seconds on a busy machine. */
  text: 10_000,
  /** One step of the model. */
  step: 120_000,
} as const;

/** While others wait for the process to end: one that is stuck is not waited for. */
const HURRIED: Partial<Patience> = { text: 2_000 };

/** What the process did not do, for the log and the caller. */
const SILENT: Readonly<Record<Phase | 'start', string>> = {
  start: 'did not start',
  open: 'did not open the model',
  text: "did not get on with the model's tokenizer or chat template",
  step: 'did not finish a step of the model',
  compile: 'did not get on with compiling',
};

/**
 * Megabytes of JavaScript values, which are mostly the tokenizer's: the largest published vocabulary takes half of it. Weights and KV are
 * not among them.
 */
const HEAP_MB = 1024;

export interface ChildEvents {
  message(message: FromEngine): void;
  /** Called once, when the process is gone. `reason` is a sentence for the log and the slot's error. */
  exit(reason: string): void;
}

/** The engine process's entry point: TypeScript in the repository, JavaScript in the package. */
export const ENGINE_ENTRY = new URL(
  `../worker/engine-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
);

/**
 * The C library of Linux then asks for huge pages for weights and KV, of which each step reads all: a tenth less time for a token.
 * Other systems do not look at it. Source: glibc manual, "Memory Allocation Tunables".
 */
export const HUGE_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };

/** What native code writes is logged, a line at a time, at most this much of one. */
const MAX_LINE = 2_000;

/** A watch that comes this late was held up itself. */
const STALL_MS = 2_000;

/** One engine process: checked messages, and a watch on its memory and on how long it says nothing. */
export class Child {
  rssBytes: number | null = null;
  readonly #process: ChildProcess;
  readonly #options: ChildOptions;
  readonly #events: ChildEvents;
  readonly #watch: NodeJS.Timeout;
  #patience: Patience;
  #phase: Phase | 'start' = 'start';
  #lastHeard = performance.now();
  #lastLook = performance.now();
  #reason: string | null = null;
  #gone = false;

  constructor(options: ChildOptions, events: ChildEvents) {
    this.#options = options;
    this.#events = events;
    this.#patience = options.patience;
    this.#process = fork(options.entry, [], {
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // No flags of this process: a debugger or a test runner must not reach into the child.
      ...options.launch([`--max-old-space-size=${HEAP_MB}`]),
      env: { ...HUGE_PAGES, ...withoutSecrets(process.env), ...NO_TELEMETRY },
    });
    this.#process.on('message', (message) => this.#onMessage(message));
    this.#process.on('error', (error) => this.#leave(`could not be started (${error.message})`));
    this.#process.on('exit', (code, signal) => this.#leave(ending(code, signal ?? signalIn(code))));
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.#logLines(text));
      stream?.on('error', () => {});
    }
    this.#watch = setInterval(() => void this.#look(), options.watchMs).unref();
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** A message to a process that is gone is dropped: `exit` tells the owner. */
  send(message: ToEngine): void {
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  /** Ends the process now, whatever it does; `exit` follows with the reason. */
  kill(reason: string): void {
    this.#reason ??= reason;
    this.#process.kill('SIGKILL');
  }

  /** Waits less for what does not get on: somebody waits for the end of this process. */
  hurry(): void {
    this.#patience = { ...this.#patience, ...HURRIED };
  }

  #onMessage(message: unknown): void {
    // What a process says after it is given up counts no more.
    if (this.#gone || this.#reason !== null) return;
    this.#lastHeard = performance.now();
    const checked = v.safeParse(FromEngine, message);
    if (!checked.success) {
      const where = checked.issues[0].path?.map(({ key }) => String(key)).join('.') ?? '';
      this.kill(`sent a message that is none of ours (${where}: ${checked.issues[0].expected})`);
      return;
    }
    if (checked.output.type === 'heartbeat') this.rssBytes = checked.output.rssBytes;
    if (checked.output.type === 'phase') this.#phase = checked.output.phase;
    this.#events.message(checked.output);
  }

  #leave(reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    clearInterval(this.#watch);
    this.#events.exit(this.#reason ?? reason);
  }

  async #look(): Promise<void> {
    const now = performance.now();
    // After a stop of this process itself (a debugger, Ctrl-Z), messages wait that were not read: the silence is its own.
    if (now - this.#lastLook > 2 * this.#options.watchMs + STALL_MS) this.#lastHeard = now;
    this.#lastLook = now;
    const silentMs = now - this.#lastHeard;
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

function ending(code: number | null, signal: string | null): string {
  // How V8 ends a process whose heap is full.
  if (signal === 'SIGABRT') return 'ran out of memory for its own data (SIGABRT)';
  return signal ? `was ended by ${signal}` : `ended with code ${code}`;
}

/** The signal that ended a program behind a shell or bwrap, which end with 128 and its number themselves. */
function signalIn(code: number | null): string | null {
  return Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0] ?? null;
}

/**
 * Tokens and keys are none of its business: what strangers wrote runs there. Nor are flags for Node itself (`NODE_OPTIONS`): a debugger or
 * another module must not reach into it.
 */
function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/token|key|secret|password|credential|^NODE_OPTIONS$/iu.test(name)),
  );
}

/**
 * Returns the resident bytes of a process and of those that it started (behind bwrap the engine is one), also while it is inside a step; null
 * where the system does not tell, and its own heartbeat does.
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

import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';

/** Reports that a template refuses its input (`raise_exception`), fails, does not end, or uses too much memory. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
  /** True if rendering exceeded a limit of time or memory. The same template may succeed another time. */
  readonly ofLimits: boolean;

  constructor(message: string, ofLimits = false) {
    super(message);
    this.ofLimits = ofLimits;
  }
}

export interface JinjaLimits {
  /** Timeout of one rendering in milliseconds. */
  timeMs: number;
  /** Maximum characters in the result of one rendering. */
  output: number;
}

const LIMITS: JinjaLimits = { timeMs: 2_000, output: 4 * 1024 * 1024 };
const MAX_SOURCE = 1024 * 1024;

/** Heap limits of the rendering thread, in MiB. The templates of published models need about 1 MiB. */
const HEAP_MB = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

/** Timeout for the start of the thread in milliseconds, long enough for a busy machine. */
const START_MS = 30_000;

/** Describes a request to the rendering thread. If `values` is null, the template is only parsed. */
export interface RenderCall {
  source: string;
  values: Readonly<Record<string, unknown>> | null;
  /** Maximum characters in the result (`JinjaLimits.output`). */
  output: number;
}

export type RenderAnswer = { text: string } | { error: string };

export interface TemplateWorkerData {
  port: MessagePort;
  /** Shared flag: 1 while an answer waits in the port, otherwise 0. */
  answered: Int32Array<SharedArrayBuffer>;
}

/**
 * Parses an untrusted template. Returns a function that renders it in a thread with a small heap and a time limit, and
 * blocks until it ends. If a template exceeds a limit, its thread is ended, and the next rendering starts a new one.
 * Parsing and rendering throw `TemplateError` if the template is not valid, fails, refuses its input or exceeds a
 * limit.
 */
export function compileJinja(source: string, limits = LIMITS): (values: Record<string, unknown>) => string {
  if (source.length > MAX_SOURCE) throw new TemplateError('the template is too large');
  const { output, timeMs } = limits;
  render({ source, values: null, output }, timeMs);
  return (values) => render({ source, values, output }, timeMs);
}

/** Renders a template in the thread. Blocks until the answer arrives, which keeps `runtime/text` synchronous. */
function render(call: RenderCall, timeMs: number): string {
  thread ??= new TemplateThread();
  const answer = thread.ask(call, timeMs);
  if (!answer) {
    thread.end();
    thread = undefined;
    throw new TemplateError('the template takes too long or too much memory', true);
  }
  if ('error' in answer) throw new TemplateError(answer.error);
  return answer.text;
}

/** The process's only rendering thread; undefined if none is running. */
let thread: TemplateThread | undefined;

const ENTRY = new URL(`./template-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

class TemplateThread {
  readonly #answered = new Int32Array(new SharedArrayBuffer(4));
  readonly #port: MessagePort;
  readonly #worker: Worker;

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const workerData: TemplateWorkerData = { port: port2, answered: this.#answered };
    this.#worker = new Worker(ENTRY, {
      workerData,
      transferList: [port2],
      resourceLimits: HEAP_MB,
      env: {},
      execArgv: [],
    });
    this.#worker.unref();
    // A thread that runs out of memory never answers, so its error is ignored and the wait ends with the timeout.
    this.#worker.on('error', () => {});
    if (!this.#wait(START_MS)) throw new Error('the thread for templates did not start');
  }

  /** Sends a request and waits for the answer. Returns null if none arrives in time. */
  ask(call: RenderCall, timeMs: number): RenderAnswer | null {
    this.#port.postMessage(call);
    return this.#wait(timeMs);
  }

  end(): void {
    this.#port.close();
    void this.#worker.terminate();
  }

  #wait(timeMs: number): RenderAnswer | null {
    if (Atomics.wait(this.#answered, 0, 0, timeMs) === 'timed-out') return null;
    Atomics.store(this.#answered, 0, 0);
    return receiveMessageOnPort(this.#port)?.message ?? null;
  }
}

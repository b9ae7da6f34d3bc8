import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';

/** A template that refuses its input (`raise_exception`), breaks, does not end, or takes too much memory. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

export interface JinjaLimits {
  /** Milliseconds that one rendering may take. */
  timeMs: number;
  /** Characters that one rendering may write. */
  output: number;
}

const LIMITS: JinjaLimits = { timeMs: 2_000, output: 4 * 1024 * 1024 };
const MAX_SOURCE = 1024 * 1024;

/** Megabytes of the thread that renders; the templates of published models take about one. */
const HEAP_MB = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

/** Milliseconds in which the thread starts, also on a busy machine. */
const START_MS = 30_000;

/** One rendering; without values the template is only read. */
export interface RenderCall {
  source: string;
  values: Readonly<Record<string, unknown>> | null;
  output: number;
}

export type RenderAnswer = { text: string } | { error: string };

export interface TemplateWorkerData {
  port: MessagePort;
  /** 1 when an answer is in the port. */
  answered: Int32Array<SharedArrayBuffer>;
}

/**
 * Reads a stranger's template, and gives a function that renders it in a thread with a small heap, within a time: a template that
 * takes too much of either ends its thread, and the next rendering starts another. Throws `TemplateError`.
 */
export function compileJinja(source: string, limits = LIMITS): (values: Record<string, unknown>) => string {
  if (source.length > MAX_SOURCE) throw new TemplateError('the template is too large');
  const { output, timeMs } = limits;
  render({ source, values: null, output }, timeMs);
  return (values) => render({ source, values, output }, timeMs);
}

/** Callers wait for a prompt anyway, so this thread waits too, and the rest of the text side stays synchronous. */
function render(call: RenderCall, timeMs: number): string {
  thread ??= new TemplateThread();
  const answer = thread.ask(call, timeMs);
  if (!answer) {
    thread.end();
    thread = undefined;
    throw new TemplateError('the template takes too long or too much memory');
  }
  if ('error' in answer) throw new TemplateError(answer.error);
  return answer.text;
}

/** The one thread of this process, while there is one. */
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
    // A thread that runs out of memory is noticed by its silence.
    this.#worker.on('error', () => {});
    if (!this.#wait(START_MS)) throw new Error('the thread for templates did not start');
  }

  /** Returns null where no answer came in time. */
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

import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace';

/** Gives a span the ids that the request has had since it arrived: they are in the log, and at its upstreams. */
export class TakenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #taken: { traceId: string; spanId: string } | null = null;

  /** Runs `start`, which starts one span, with these ids. */
  with<T>(ids: { traceId: string; spanId: string }, start: () => T): T {
    this.#taken = ids;
    try {
      return start();
    } finally {
      this.#taken = null;
    }
  }

  generateTraceId(): string {
    return this.#taken?.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#taken?.spanId ?? this.#random.generateSpanId();
  }
}

import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace';

/**
 * Generates ids for spans: those that the request has had since it arrived, because they are already in the log and
 * were sent to upstreams.
 */
export class TakenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #taken: { traceId: string; spanId: string } | null = null;

  /** Runs `start`, which must start one span; this span gets the given ids. */
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

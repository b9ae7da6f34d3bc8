import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace';

/**
 * Generates the ids of spans. The span of a request gets the ids that the request has had since it arrived, because the
 * log already has them. Other spans get random ids.
 */
export class TakenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #taken: { traceId: string; spanId: string } | null = null;

  /** Runs `start`, which must start exactly one span, and gives that span `ids`. Returns the result of `start`. */
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

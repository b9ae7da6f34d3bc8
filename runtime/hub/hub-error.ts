import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';

/** Reports that the hub answered a request with an error status. */
export class HubRefusal extends Error {
  readonly status: number;
  /**
   * Value of the header `X-Error-Code`, such as `RepoNotFound`, `GatedRepo`, `RevisionNotFound` or `EntryNotFound`;
   * null if absent.
   */
  readonly errorCode: string | null;
  /** Wait that the header `Retry-After` asks for, in milliseconds; null if it asks for none. */
  readonly retryAfterMs: number | null;

  constructor(response: Response) {
    super(`${new URL(response.url || 'http://unknown').host} answered ${response.status}`);
    this.status = response.status;
    this.errorCode = response.headers.get('x-error-code');
    this.retryAfterMs = retryAfterMs(response.headers);
  }

  /** True if the same request may succeed later: for the statuses 408, 425 and 429, and from 500 on. */
  get temporary(): boolean {
    return this.status === 408 || this.status === 425 || this.status === 429 || this.status >= 500;
  }
}

const SET_TOKEN = 'set HF_TOKEN to a token that may read it (https://huggingface.co/settings/tokens)';

/**
 * Converts the error of a request to the hub to an `AssayError` that tells the user what to do: `model_not_found`,
 * `model_not_allowed` or `hub_unreachable`. Returns an `AssayError` unchanged.
 */
export function hubError(model: ModelId, error: unknown, endpoint: string): AssayError {
  if (error instanceof AssayError) return error;
  if (!(error instanceof HubRefusal)) {
    return new AssayError(
      'hub_unreachable',
      `The hub at ${new URL(endpoint).host} cannot be reached. Check the network, the proxy and HF_ENDPOINT, then run the command again. A download continues where it stopped.`,
      { cause: error },
    );
  }
  const details = { param: 'model', cause: error };
  if (error.errorCode === 'GatedRepo') {
    const ask = `${model} is gated: ask for access on its page on the hub, then ${SET_TOKEN}.`;
    return new AssayError('model_not_allowed', ask, details);
  }
  if (error.errorCode === 'RevisionNotFound') {
    return new AssayError(
      'model_not_found',
      `${model} has no such revision on the hub. Check its page for branches and tags.`,
      details,
    );
  }
  if (error.errorCode === 'EntryNotFound') {
    return new AssayError('model_not_found', `A file of ${model} is gone from the hub. Pull again.`, details);
  }
  // The hub also answers 401 for a repository that does not exist, so as not to reveal private ones.
  if (error.status === 401 || error.status === 404) {
    const missing = `The hub has no model ${model}, or it is private. Check the spelling; for a private model, ${SET_TOKEN}.`;
    return new AssayError('model_not_found', missing, details);
  }
  if (error.status === 403) {
    return new AssayError('model_not_allowed', `The hub does not let you read ${model}: ${SET_TOKEN}.`, details);
  }
  const busy = error.status === 429 ? 'asks to slow down (429)' : `has a fault (${error.status})`;
  return new AssayError(
    'hub_unreachable',
    `The hub ${busy}. Try again later. The download continues where it stopped.`,
    {
      cause: error,
    },
  );
}

const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/**
 * Returns the milliseconds to wait before the next attempt. The full wait doubles with each attempt, from 0.5 to 30
 * seconds. A random part of up to half of it is subtracted, which keeps many clients from returning at the same time
 * ("equal jitter" in the AWS architecture blog's "Exponential Backoff And Jitter").
 *
 * @param tried number of attempts that have failed, at least 1
 * @param random random number from 0 to 1
 */
export function backoff(tried: number, random: number): number {
  const full = Math.min(FIRST_MS * 2 ** (tried - 1), LONGEST_MS);
  return full / 2 + (full / 2) * random;
}

const LONGEST_RETRY_AFTER_MS = 5 * 60_000;

/**
 * Returns the wait that the header `Retry-After` requests (RFC 9110, 10.2.3), in milliseconds, at most five minutes.
 * Returns null if the header is absent or neither a number nor a date.
 */
export function retryAfterMs(headers: Headers | undefined, nowMs: number = Date.now()): number | null {
  const value = headers?.get('retry-after');
  if (!value) return null;
  const wait = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isNaN(wait) ? null : Math.min(Math.max(wait, 0), LONGEST_RETRY_AFTER_MS);
}

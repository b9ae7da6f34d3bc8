import { AssayError } from './errors.ts';
import type { DecideResponse, ExtractResponse, RunTasksResponse } from './generated/types.gen.ts';

type AnyResponse = RunTasksResponse | DecideResponse | ExtractResponse;

const WHY: Record<string, string> = {
  length: 'The output limit was reached: raise max_output_tokens and send the request again.',
  content_filter: 'The answer was filtered: sending the same input again does not help.',
};

/**
 * Reports an answer that was cut. `response` has the part that was generated; `finishReason` is `length` or
 * `content_filter`.
 */
export class IncompleteError extends AssayError {
  override readonly name: string = 'IncompleteError';
  readonly finishReason: string;
  readonly response: AnyResponse;

  constructor(response: AnyResponse, finishReason: string) {
    super(`${WHY[finishReason]} (request ${response.id})`);
    this.finishReason = finishReason;
    this.response = response;
  }
}

/** Returns the response; throws `IncompleteError` if its `finish_reason` says that the answer was cut. */
export function ensureComplete<R extends AnyResponse>(response: R): R {
  const reason = response.choices[0]?.finish_reason ?? 'stop';
  if (Object.hasOwn(WHY, reason)) throw new IncompleteError(response, reason);
  return response;
}

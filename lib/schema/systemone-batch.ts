import * as v from 'valibot';
import { object } from '../validation/objects.ts';
import { rule } from '../validation/rules.ts';
import { ErrorDetails } from './error-body.ts';
import { SystemOneRequest, structured } from './systemone-request.ts';
import { SystemOneResponse } from './systemone-response.ts';
import { count, described } from './values.ts';

/* Requests and responses of `POST /v1/systemone/batch`, as the server of Laya has them (PyPI `laya` 0.4.15). */

/** Maximum number of states of one request. */
const MOST_STATES = 256;

const { state: _, windows: __, ...rest } = SystemOneRequest.entries;

export const SystemOneBatchRequest = object({
  ...rest,
  states: described(
    v.pipe(
      v.array(structured),
      v.minLength(1),
      rule(({ length }) =>
        length > MOST_STATES
          ? {
              code: 'request_too_large',
              message: `must have at most ${MOST_STATES} states; send the others in further requests`,
            }
          : null,
      ),
      v.metadata({ maxItems: MOST_STATES }),
    ),
    'The texts or JSON values that all questions are asked about, each alone.',
  ),
});
export type SystemOneBatchRequest = v.InferOutput<typeof SystemOneBatchRequest>;

export const SystemOneFailure = v.object({ error: ErrorDetails });
const SystemOneResult = v.union([SystemOneResponse, SystemOneFailure]);

const total_usage = v.object({ input_tokens: count, output_tokens: count });

export const SystemOneBatchResponse = v.object({
  results: described(
    v.array(SystemOneResult),
    'The answers in the order of the states; error in the place of one that cannot be given.',
  ),
  total_usage,
});
/** One line of a response in lines: an answer, or, as the last one, the usage. */
export const SystemOneBatchLine = v.union([SystemOneResponse, SystemOneFailure, v.object({ total_usage })]);

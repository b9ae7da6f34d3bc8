import type * as v from 'valibot';
import type { BatchAnswer, TaskBatch } from '../lib/backend.ts';
import { readJson } from '../lib/json/body.ts';
import { DecideRequest, ExtractRequest, RunTasksRequest } from '../lib/schema/task-request.ts';
import { batchOfDecision, batchOfExtraction, batchOfTasks } from '../lib/tasks/batch.ts';
import { CUT_TASKS_HEADER, cutTasksText } from '../lib/tasks/cut-tasks.ts';
import { decisionBody, extractionBody, tasksBody } from '../lib/tasks/response.ts';
import { validate } from '../lib/validation/validate.ts';
import { checkRight } from './auth.ts';
import { callOf } from './call.ts';
import type { AppDeps, AppHandler } from './context.ts';

/** Handles `POST /v1/tasks` and its alias `POST /v1/decide-extract`: answers a list of decide and extract tasks. */
export const runTasks = (deps: AppDeps) => answering(deps, RunTasksRequest, batchOfTasks, tasksBody);

/** Handles `POST /decide`: answers one decide task. */
export const decide = (deps: AppDeps) => answering(deps, DecideRequest, batchOfDecision, decisionBody);

/** Handles `POST /extract`: answers one extract task. */
export const extract = (deps: AppDeps) => answering(deps, ExtractRequest, batchOfExtraction, extractionBody);

/**
 * Returns a handler that validates a request, runs it as a batch and writes the answer. Its checks run in the order of
 * docs/interface.md, D-15; the key has been checked before.
 */
function answering<TSchema extends v.GenericSchema>(
  { backend, quota }: Pick<AppDeps, 'backend' | 'quota'>,
  schema: TSchema,
  batchOf: (request: v.InferOutput<TSchema>) => TaskBatch,
  bodyOf: (id: string, answer: BatchAnswer) => string,
): AppHandler {
  return async (c) => {
    const json = await readJson(c.req.raw, { contentType: 'optional', share: c.get('body') });
    const batch = batchOf(validate(schema, json));
    const call = callOf(c, quota);
    checkRight(c, batch.model);
    const answer = await backend.runTasks(batch, call);
    const headers = {
      'content-type': 'application/json',
      ...(answer.cut ? { [CUT_TASKS_HEADER]: cutTasksText(answer.cut) } : {}),
    };
    return new Response(bodyOf(call.requestId, answer), { headers });
  };
}

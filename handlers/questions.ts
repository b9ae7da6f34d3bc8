import type { BatchAnswer, TaskBatch } from '../lib/backend.ts';
import { readJson } from '../lib/json/body.ts';
import type { JsonValue } from '../lib/json/parse.ts';
import { batchOfDecisions, decisionsBody } from '../lib/questions/decisions.ts';
import { DEFAULT_SETTINGS, type QuestionSettings, settingsOf } from '../lib/questions/settings.ts';
import { batchOfSystemOne, systemOneBody } from '../lib/questions/systemone.ts';
import { DecisionsRequest } from '../lib/schema/decisions-request.ts';
import { SystemOneRequest } from '../lib/schema/systemone-request.ts';
import { validate } from '../lib/validation/validate.ts';
import { checkRight } from './auth.ts';
import { callOf } from './call.ts';
import type { AppContext, AppDeps, AppHandler } from './context.ts';

/** Holds a request as a batch, and a function that converts the batch's answer to the response body. */
interface Questions {
  batch: TaskBatch;
  body(answer: BatchAnswer): string;
}

/**
 * Handles `POST /v1/decisions` and `POST /v1/systemone`. Some gateways send either API's body to either path, so the
 * body determines the format: System One's has a `state`, OpenAI's an `input`.
 */
export function answerQuestions(deps: AppDeps): AppHandler {
  const server = { ...DEFAULT_SETTINGS, ...deps.questions };
  return async (c) => {
    const json = await readJson(c.req.raw, { contentType: 'optional', share: c.get('body') });
    const { batch, body } = questionsIn(c, json, server);
    const call = callOf(c, deps.quota);
    checkRight(c, batch.model);
    const answer = await deps.backend.runTasks(batch, call);
    return new Response(body(answer), { headers: { 'content-type': 'application/json' } });
  };
}

function questionsIn(c: AppContext, json: JsonValue, server: QuestionSettings): Questions {
  const has = (name: string) => typeof json === 'object' && json !== null && Object.hasOwn(json, name);
  if (has('state') !== has('input')) c.set('api', has('state') ? 'systemone' : 'openai');
  if (c.get('api') === 'systemone') {
    const request = validate(SystemOneRequest, json);
    const settings = settingsOf(request, server);
    return { batch: batchOfSystemOne(request), body: (answer) => systemOneBody(request, answer, settings) };
  }
  const request = validate(DecisionsRequest, json);
  const settings = settingsOf(request, server);
  return { batch: batchOfDecisions(request), body: (answer) => decisionsBody(request, answer, settings) };
}

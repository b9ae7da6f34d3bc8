import type { BatchAnswer, ListedModel, TaskBatch } from '../lib/backend.ts';
import type { Clock } from '../lib/clock.ts';
import { readJson } from '../lib/json/body.ts';
import { type JsonValue, sourceText } from '../lib/json/parse.ts';
import { CONTEXT_HEADER, contextHash } from '../lib/prompt/affinity.ts';
import { DEFAULT_SETTINGS } from '../lib/questions/settings.ts';
import { RetryLater } from '../lib/rows/retry-later.ts';
import { CUT_TASKS_HEADER, cutTasksText } from '../lib/tasks/cut-tasks.ts';
import { checkRight, noteModel } from './auth.ts';
import { callOf } from './call.ts';
import { compiled } from './compiled.ts';
import type { AppHandler, Services } from './context.ts';
import { withEvidence } from './evidence.ts';
import type { Format } from './formats.ts';
import { answerInWindows } from './windows.ts';

/**
 * Returns the members of a route that answers requests of one or more formats, each with one batch. A request has the
 * format that claims its body, or else the first one.
 */
export function answering(...formats: [Format, ...Format[]]) {
  const [{ api, schema, multipart }] = formats;
  const read = (json: JsonValue) => formatOf(json, formats).read(json);
  return { api, request: schema, multipart, read, handler: (services: Services) => answer(services, formats) };
}

/** Returns the format that claims a body, or else the first one. */
function formatOf(json: JsonValue, formats: readonly [Format, ...Format[]]): Format {
  return formats.find((one) => one.claims(json)) ?? formats[0];
}

/**
 * Returns a handler that validates a request, runs it as a batch and writes the answer. Its checks run in the order of
 * docs/interface.md, D-15; the key has been checked before.
 */
function answer(
  { backend, quota, questions, aliases, clock }: Services,
  formats: readonly [Format, ...Format[]],
): AppHandler {
  const settings = { ...DEFAULT_SETTINGS, ...questions };
  return async (c) => {
    const json = await readJson(c.req.raw, {
      contentType: 'optional',
      multipart: formats[0].multipart,
      ...c.get('body'),
      ...formats[0].limits,
    });
    const format = formatOf(json, formats);
    c.set('api', format.api);
    const read = () => format.read(json, c.req.param('model'));
    const { batch, bodyOf, windows, evidence } = await compiled(c, sourceText(json), read);
    const keepAlive: unknown = Object(json).keep_alive;
    const call = callOf(c, quota, { keepAlive });
    if (batch.model !== undefined && aliases.has(batch.model)) delete batch.model;
    if (batch.model !== undefined) checkRight(c, batch.model);
    const run = busyLater(clock, (one) => backend.runTasks(one, callOf(c, quota, { keepAlive })), c.req.raw.signal);
    const first = windows
      ? await answerInWindows(batch, windows.windows, windows.rules, {
          run,
          mostTokens: mostTokensOf(await backend.listModels(call), batch.model),
        })
      : await run(batch);
    // A request may omit the model; then only the answer names it.
    noteModel(c, first.model);
    const answer = evidence ? await withEvidence(batch, first, evidence, run) : first;
    const headers = new Headers({ 'content-type': 'application/json', [CONTEXT_HEADER]: contextHash(batch) });
    if (answer.cut && format.api === 'decisions') headers.set(CUT_TASKS_HEADER, cutTasksText(answer.cut));
    return new Response(bodyOf(answer, { requestId: call.requestId, questions: settings }), { headers });
  };
}

/**
 * Returns a function that runs the batches of one request: the first at once or never, the others, such as those of
 * further windows and of evidence, when the server is not too busy.
 */
function busyLater(
  clock: Clock,
  run: (batch: TaskBatch) => Promise<BatchAnswer>,
  signal: AbortSignal,
): (batch: TaskBatch) => Promise<BatchAnswer> {
  const later = new RetryLater(clock);
  let begun = false;
  return (batch) => {
    if (begun) return later.run(() => run(batch), signal);
    begun = true;
    return run(batch);
  };
}

/** Tokens that a model is assumed to read at once if a box of an older version does not say it. */
const ASSUMED_TOKENS = 4096;

/** Returns how many tokens the model of a request reads at once. */
function mostTokensOf(models: readonly ListedModel[], wanted: string | undefined): number {
  const model = models.find(({ id, status }) => (wanted === undefined ? status === 'active' : id === wanted));
  return model?.capabilities?.max_tokens ?? ASSUMED_TOKENS;
}

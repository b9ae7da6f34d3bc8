import { Hono } from 'hono';
import { systemClock } from '../lib/clock.ts';
import { APIS } from '../lib/error-status.ts';
import { BodyBudget } from '../lib/json/body-budget.ts';
import { randomSpanId } from '../lib/trace-context.ts';
import { requireAdmin, requireKey } from './auth.ts';
import { limitBodies } from './body.ts';
import { chatCompletions } from './chat.ts';
import type { AppContext, AppDeps, AppEnv, Services } from './context.ts';
import { contract } from './contract.ts';
import { download } from './download.ts';
import { errorResponse } from './error-response.ts';
import { guard } from './guard.ts';
import { deleteModel, deleteModelByPath, load, unload } from './model-operations.ts';
import { listModels, retrieveModel } from './models.ts';
import { notFound } from './not-found.ts';
import { page } from './pages.ts';
import { answerQuestions } from './questions.ts';
import { requestId } from './request-id.ts';
import { responses } from './responses.ts';
import { mountPath, routesOf } from './routes.ts';
import { browsersToPlayground, health, serverStatus } from './status.ts';
import { decide, extract, runTasks } from './tasks.ts';

/**
 * Creates the app that serves the decision service, the model server, or both (`deps.apis`). Its `fetch` takes a
 * `Request` and returns a `Response`, so it runs on any host: `createApp({ backend, host, keys }).fetch(request)`.
 */
export function createApp(deps: AppDeps): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  const services: Services = {
    clock: systemClock,
    newRequestId: () => crypto.randomUUID(),
    newSpanId: randomSpanId,
    beginTraces: false,
    log: () => {},
    heartbeatMs: 1500,
    bodyBytes: 256 * 1024 * 1024,
    ...deps,
  };
  const { host, keys, metrics } = services;
  const apis = new Set(deps.apis ?? APIS);

  // Middleware applies to all routes, because it is registered before them.
  app.use(requestId(services));
  app.onError(failed);
  app.notFound(notFound(app));
  if (deps.guard) app.use(guard(deps.guard));
  const bodies = new BodyBudget(services.bodyBytes);
  app.use(limitBodies(bodies));

  routesOf(app, 'models')('GET', ['/openapi.json'], contract());
  for (const [path, file] of deps.pages ?? []) routesOf(app, 'models')('GET', [path], page(path, file));
  if (apis.has('decisions')) {
    const decisions = routesOf(app, 'decisions', requireKey(keys));
    decisions('POST', ['/v1/tasks', '/v1/decide-extract'], runTasks(services));
    decisions('POST', ['/decide'], decide(services));
    decisions('POST', ['/extract'], extract(services));
    routesOf(app, 'openai', requireKey(keys))('POST', ['/v1/decisions'], answerQuestions(services));
    routesOf(app, 'systemone', requireKey(keys))('POST', ['/v1/systemone'], answerQuestions(services));
  }

  if (apis.has('models')) {
    const known = deps.keyForModels ? [requireKey(keys)] : [];
    const admin = deps.keyForModels ? [requireKey(keys), requireAdmin] : [];
    const open = routesOf(app, 'models');
    const models = routesOf(app, 'models', ...known);
    const managing = routesOf(app, 'models', ...admin);
    models('GET', ['/v1/models', '/models'], listModels(services));
    models('POST', ['/v1/chat/completions'], chatCompletions(services));
    models('POST', ['/v1/responses'], responses(services));
    if (metrics) models('GET', ['/metrics'], () => metrics({ bodyBytes: bodies.used }));
    if (host) {
      const status = serverStatus(host);
      open('GET', ['/'], deps.pages?.has('/playground') ? browsersToPlayground(status) : status);
      open('GET', ['/health'], health(host));
      models('GET', ['/currentmodel'], health(host));
      managing('POST', ['/load', '/v1/models/load'], load(host));
      managing('POST', ['/unload'], unload(host));
      managing('POST', ['/download', '/v1/models/download'], download(host, services));
      managing('POST', ['/delete', '/v1/models/delete'], deleteModel(host));
    }
    // Registered last: this path also matches those of the operations, such as `/v1/models/load`.
    mountPath(app, 'models', '/v1/models/:model_id{.+}', [
      { method: 'GET', before: known, handler: retrieveModel(services) },
      ...(host ? [{ method: 'DELETE' as const, before: admin, handler: deleteModelByPath(host) }] : []),
    ]);
  }
  return app;
}

function failed(error: Error, c: AppContext): Response {
  // The caller has disconnected and receives nothing; the status is for the log. 499 is nginx's "client closed
  // request", which Hono's types do not include.
  if (c.req.raw.signal.aborted) return c.body(null, 499 as 500);
  return errorResponse(error, c.get('api') ?? 'models');
}

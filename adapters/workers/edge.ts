import { waitUntil } from 'cloudflare:workers';
import type { Hono } from 'hono';
import { createApp } from '../../handlers/app.ts';
import type { AppEnv } from '../../handlers/context.ts';
import type { InferenceBackend } from '../../lib/backend.ts';
import { systemClock } from '../../lib/clock.ts';
import { asModelId } from '../../lib/model-id.ts';
import { askModel, escalating } from '../../lib/questions/escalation.ts';
import type { QuestionSettings } from '../../lib/questions/settings.ts';
import { CONFIDENCES } from '../../lib/schema/question-fields.ts';
import type { Env } from './env.ts';
import { DEADLINES, type Deadlines, ForwardingBackend } from './forward/backend.ts';
import { KvKeys } from './keys/kv-keys.ts';
import { logAttempt, logError, logRequest } from './log.ts';
import { statusRoutes } from './status-routes.ts';
import { upstreamRoutes } from './upstream-routes.ts';
import { Fleet } from './upstreams/fleet.ts';
import { parseUpstreams, type Upstream } from './upstreams/upstream.ts';

/** Name of the fleet's Durable Object; there is only one. */
const FLEET = 'fleet';

/**
 * Limit of the request bodies that an isolate holds at once, in bytes. An isolate has 128 MB (Workers' limits), and a
 * body of 20 MiB takes 86 MiB, measured in Node: as bytes, as parsed values, and as the forwarded text.
 */
const BODY_BYTES = 20 * 1024 * 1024;

/**
 * Creates the edge for one isolate: the same app as in the Node server (`createApp`), with a backend that forwards
 * requests to upstreams, and the routes of `statusRoutes` and `upstreamRoutes`. Throws an `Error` that says which
 * variable or secret to fix.
 */
export function createEdge(env: Env): Hono<AppEnv> {
  const clock = systemClock;
  const upstreams = parseUpstreams(env).filter((upstream) => hasKey(upstream, env));
  if (upstreams.length === 0)
    throw new Error('No box can be used, because none has its key. The log lines above say which secrets to set.');
  const fleet = new Fleet({
    upstreams,
    report: (report) => env.FLEET.getByName(FLEET).report(report),
    waitUntil,
    clock,
    edge: crypto.randomUUID(),
  });
  const client = { fetch: (...request: Parameters<typeof fetch>) => fetch(...request), keyOf: keyOf(env) };
  const keys = new KvKeys({ kv: env.KEYS, quota: env.QUOTA, clock });
  const boxes = new ForwardingBackend(fleet, { ...client, clock, log: logAttempt }, deadlinesOf(env));
  const backend = cascaded(boxes, env);
  const app = createApp({
    backend,
    aliases: new Set(env.ALIASES?.split(/[\s,]+/)),
    keys,
    quota: keys,
    keyForModels: true,
    questions: questionsOf(env),
    log: logRequest,
    bodyBytes: BODY_BYTES,
  });
  statusRoutes(app, fleet, keys);
  upstreamRoutes(app, { fleet, keys, client });
  return app;
}

/** Returns the backend, which asks uncertain questions again if ESCALATE names a model of the boxes. */
function cascaded(backend: InferenceBackend, { ESCALATE, ESCALATE_BELOW = '0.8' }: Env): InferenceBackend {
  if (!ESCALATE) return backend;
  if (asModelId(ESCALATE) === null) throw new Error('ESCALATE must be a model id, such as org/name.');
  const below = Number(ESCALATE_BELOW);
  if (!(below >= 0 && below <= 1)) throw new Error('ESCALATE_BELOW must be a number from 0 to 1.');
  return escalating(backend, { below, ask: askModel(backend, ESCALATE) });
}

function deadlinesOf({ DEADLINE_SECONDS }: Env): Deadlines {
  if (DEADLINE_SECONDS === undefined) return DEADLINES;
  const seconds = Number(DEADLINE_SECONDS);
  if (!(seconds >= 1 && seconds <= 3600)) throw new Error('DEADLINE_SECONDS must be a number from 1 to 3600.');
  return { ...DEADLINES, answerMs: seconds * 1000 };
}

/** Returns the edge's defaults for the decision formats, which replace the settings of the upstreams. */
function questionsOf({ ABSTAIN_BELOW, CONFIDENCE }: Env): Partial<QuestionSettings> {
  const abstainBelow = Number(ABSTAIN_BELOW ?? 0);
  if (!(abstainBelow >= 0 && abstainBelow <= 1)) throw new Error('ABSTAIN_BELOW must be a number from 0 to 1.');
  const confidence = CONFIDENCES.find((one) => one === CONFIDENCE);
  if (CONFIDENCE !== undefined && !confidence) throw new Error(`CONFIDENCE must be one of ${CONFIDENCES.join(', ')}.`);
  return { abstainBelow, confidence };
}

/**
 * Tells whether the secret with the upstream's key is set. If not, logs an error instead of throwing, because the other
 * upstreams can still be used.
 */
function hasKey(upstream: Upstream, env: Env): boolean {
  const found = typeof env[upstream.key_secret] === 'string' && env[upstream.key_secret] !== '';
  if (!found) {
    logError(
      `Box ${upstream.name} is not used: there is no secret ${upstream.key_secret}. Run: wrangler secret put ${upstream.key_secret}`,
    );
  }
  return found;
}

function keyOf(env: Env): (upstream: Upstream) => string {
  return (upstream) => String(env[upstream.key_secret]);
}

import type { Context, Handler, MiddlewareHandler } from 'hono';
import type { InferenceBackend } from '../lib/backend.ts';
import type { Clock } from '../lib/clock.ts';
import type { Batches } from '../lib/contract/batches.ts';
import type { Api, ErrorFormat } from '../lib/error-status.ts';
import type { BodyDecoders } from '../lib/json/body.ts';
import type { BodyBudget, BodyShare } from '../lib/json/body-budget.ts';
import type { ApiKey, KeyStore, Quota } from '../lib/keys.ts';
import type { ModelHost } from '../lib/models/host.ts';
import type { QuestionSettings } from '../lib/questions/settings.ts';
import type { TraceContext } from '../lib/trace-context.ts';
import type { Pages } from './pages.ts';

/** Holds the dependencies of the app. Only `backend` is required. */
export interface AppDeps {
  /** Answers tasks and chats, and lists the models. */
  backend: InferenceBackend;
  /**
   * Manages the models of this machine. Absent on an edge, which then has no routes for status, load, unload,
   * download and delete.
   */
  host?: ModelHost;
  /** Keeps files and batches; absent: there are no routes for them. */
  batches?: Batches;
  /** Names by which requests may call the loaded model, besides its id; none by default. */
  aliases?: ReadonlySet<string>;
  /** The APIs to mount; both by default. */
  apis?: readonly Api[];
  /**
   * API keys. Every route that answers tasks or questions needs one of them, so without this store these routes refuse
   * all requests. The other routes need a key only with `keyForModels`.
   */
  keys?: KeyStore;
  /**
   * Settings of `/v1/decisions` and `/v1/systemone` for requests that do not set their own; `DEFAULT_SETTINGS` by
   * default.
   */
  questions?: Partial<QuestionSettings>;
  /** Counts requests against the quotas of keys; no limits by default. */
  quota?: Quota;
  /**
   * Requires a key on every route except `GET /`, `GET /health`, `GET /openapi.json` and the web pages, and the admin
   * scope to load, unload, download and delete. Set it if the server listens on any address other than loopback.
   * Default: false. Routes that answer tasks or questions need a key in any case.
   */
  keyForModels?: boolean;
  /**
   * Settings by which requests with a foreign Host or Origin header are refused; without them, none is. Omit them only
   * if the program around the app does this itself, or does not run on a user's machine.
   */
  guard?: GuardSettings;
  /** Answers `GET /metrics` in Prometheus' text format; without it, there is no such route. */
  metrics?: (app: AppFigures) => Promise<Response>;
  /** Web pages: the playground at `/playground`, the API reference at `/docs`. They need no key. None by default. */
  pages?: Pages;
  /**
   * Maximum total size in bytes of the bodies of all running requests; the first 64 KiB of each body are not counted.
   * Default: 256 MiB.
   */
  bodyBytes?: number;
  /** Decoders of compressed bodies; `STANDARD_DECODERS` by default. */
  decoders?: BodyDecoders;
  /** Resolves when a body of more than 16 KiB may be parsed, which callers do in turns; without it, at once. */
  turn?: (caller: string) => Promise<void>;
  /** Compiles the schemas of expensive bodies; without it, the thread that serves requests does. */
  checker?: BodyChecker;
  /** Milliseconds without an event after which a stream sends a comment to keep the connection open; default 1500. */
  heartbeatMs?: number;
  /** Tells whether the server has begun to stop: it is not ready then, although it may still answer. */
  isStopping?: () => boolean;
  /** Called when something asks whether the server is ready. */
  probed?: () => void;
  /** Time source; the system clock by default. */
  clock?: Clock;
  /** Returns the id of a request that has no usable `x-request-id` header; a random UUID by default. */
  newRequestId?: () => string;
  /** Returns a new span id for a traced request, 16 hex digits; random by default. */
  newSpanId?: () => string;
  /**
   * Starts a new trace for each request whose caller sent no `traceparent`. Set it if the log exports traces. Default:
   * false.
   */
  beginTraces?: boolean;
  /** Called when the answer to a request begins, and again when a stream ends. By default nothing is logged. */
  log?: RequestLog;
}

/** Holds the figures that the app itself measures for `GET /metrics`. */
export interface AppFigures {
  /** Bytes of the body budget (`AppDeps.bodyBytes`) that running requests have reserved. */
  bodyBytes: number;
  /** Header `Accept` of the request. */
  accept: string | undefined;
}

/** Holds the dependencies of the handlers: `AppDeps`, with the defaults of the members below filled in. */
export type Services = AppDeps &
  Required<
    Pick<AppDeps, 'aliases' | 'beginTraces' | 'clock' | 'newRequestId' | 'newSpanId' | 'log' | 'heartbeatMs'>
  > & {
    /** Budget of the bodies of all running requests (`AppDeps.bodyBytes`). */
    bodies: BodyBudget;
  };

export interface GuardSettings {
  /** Accepts only loopback names in the Host header (against DNS rebinding). */
  loopbackOnly: boolean;
  /** Allowed origins besides the server's own, such as `http://localhost:3000`; they get CORS headers. */
  allowOrigins: readonly string[];
}

export type RequestLog = (record: RequestRecord) => void;

/** Describes an event of one request for the log. Never contains a prompt, an answer or the secret of a key. */
export interface RequestRecord {
  event: 'request' | 'stream_ended' | 'stream_failed' | 'caller_left' | 'ended_by_shutdown';
  requestId: string;
  method: string;
  path: string;
  /** Path of the route in the contract, such as `/v1/models/{model_id}`; absent if none matched. */
  route?: string;
  status: number;
  /** Milliseconds since the request arrived. */
  ms: number;
  /** True if the answer is a stream, which continues after the event `request`. */
  stream?: true;
  /** Name of the API key. */
  key?: string;
  /** Model that answered; absent if none did. */
  model?: string;
  /** Id of the request's trace (W3C Trace Context), 32 hex digits; absent without a trace. */
  traceId?: string;
  /** Id of this server's span, 16 hex digits; absent without a trace. */
  spanId?: string;
  /** Id of the caller's span, 16 hex digits; absent if the caller sent no valid `traceparent`. */
  parentId?: string;
  /** Flags of the trace, two hex digits; absent without a trace. */
  traceFlags?: string;
  /** The value that the handler or the stream threw; absent if it threw none. */
  error?: unknown;
}

/** Describes the values that middleware sets on a request. */
export interface AppEnv {
  Variables: {
    requestId: string;
    /** Present if the caller sent a valid `traceparent` or `beginTraces` is set. */
    trace?: TraceContext;
    /** Time at which the request arrived, in milliseconds since 1970-01-01 UTC. */
    begin: number;
    /** Format of the error responses to this request. */
    api: ErrorFormat;
    /** Path of the request's route in the contract, such as `/v1/models/{model_id}`; absent if there is no route. */
    route?: string;
    /** The request's share of the body budget (`AppDeps.bodyBytes`), and what its body is decoded and parsed by. */
    body: { share: BodyShare; decoders: BodyDecoders; turn?: () => Promise<void> };
    /** JSON text of the body, once it is read. */
    text?: string;
    checker?: BodyChecker;
    /** The caller's API key; present on routes that require one. */
    key?: ApiKey;
    /** Model that answered the request; absent before. */
    model?: string;
  };
}

/** Checks bodies whose schemas take long to compile, apart from the thread that serves requests. */
export interface BodyChecker {
  /**
   * Runs `Route.read` of the route with this path for a body. Rejects with the `AssayError` that it throws; with
   * `overloaded` if too many bodies wait.
   *
   * @param caller whose turn it is; callers take turns
   */
  check(body: { path: string; text: string }, caller: string, signal: AbortSignal): Promise<void>;
}

export type AppContext = Context<AppEnv>;
export type AppHandler = Handler<AppEnv>;
export type AppMiddleware = MiddlewareHandler<AppEnv>;

import type { Context, Handler, MiddlewareHandler } from 'hono';
import type { InferenceBackend } from '../lib/backend.ts';
import type { Clock } from '../lib/clock.ts';
import type { Api, ErrorFormat } from '../lib/error-status.ts';
import type { ModelHost } from '../lib/host.ts';
import type { BodyShare } from '../lib/json/body-budget.ts';
import type { ApiKey, KeyStore, Quota } from '../lib/keys.ts';
import type { QuestionSettings } from '../lib/questions/settings.ts';
import type { TraceContext } from '../lib/trace-context.ts';
import type { Pages } from './pages.ts';

/** Holds the dependencies of the handlers. */
export interface AppDeps {
  /** Answers tasks and chats. */
  backend: InferenceBackend;
  /**
   * Manages the models of this machine. Absent on a gateway, which then has no routes for status, load, unload,
   * download and delete.
   */
  host?: ModelHost;
  /** The APIs to mount; both by default. */
  apis?: readonly Api[];
  /** The known keys. The decision service refuses every call without one of them. */
  keys?: KeyStore;
  /** Defaults of the decision formats for what a request omits; default: `DEFAULT_SETTINGS`. */
  questions?: Partial<QuestionSettings>;
  /** Counts requests against the quotas of keys; no limits by default. */
  quota?: Quota;
  /**
   * Requires a key on every route of the model server except `GET /` and `GET /health`, and the admin scope to load,
   * unload, download and delete. Set for any address other than loopback.
   */
  keyForModels?: boolean;
  /**
   * Refuses foreign Host names and Origins. Omit it only if the host program does this itself, or is not on a user's
   * machine.
   */
  guard?: GuardSettings;
  /** Answers `GET /metrics` in Prometheus' text format; without it, there is no such route. */
  metrics?: (app: AppFigures) => Promise<Response>;
  /** Web pages: the playground at `/playground`, the API reference at `/docs`. They need no key. None by default. */
  pages?: Pages;
  /**
   * Budget in bytes for the bodies of all running requests together; 64 KiB of each body are not counted. Default: 256
   * MiB.
   */
  bodyBytes?: number;
  /** Milliseconds of silence after which a stream sends a comment; default 1500. */
  heartbeatMs?: number;
  /** Clock; the system's by default. */
  clock?: Clock;
  /** Returns the id of a request that was sent without one; a random UUID by default. */
  newRequestId?: () => string;
  /** Returns 16 random hex digits, for the span of a traced request; random by default. */
  newSpanId?: () => string;
  /** Begins a trace for a request whose caller sent none, for a log that exports traces. Default: false. */
  beginTraces?: boolean;
  /**
   * Called once for each request, when its answer begins, and at the end of each stream. By default nothing is logged.
   */
  log?: RequestLog;
}

/** Holds the figures that the app itself measures, for the metrics. */
export interface AppFigures {
  /** Bytes of the budget for bodies that running requests have reserved. */
  bodyBytes: number;
}

/** Holds the dependencies with their defaults filled in. */
export type Services = AppDeps &
  Required<Pick<AppDeps, 'beginTraces' | 'clock' | 'newRequestId' | 'newSpanId' | 'log' | 'heartbeatMs' | 'bodyBytes'>>;

export interface GuardSettings {
  /** Accepts loopback Host names only (against DNS rebinding). */
  loopbackOnly: boolean;
  /** Allowed origins besides the server's own, such as `http://localhost:3000`; they get CORS headers. */
  allowOrigins: readonly string[];
}

export type RequestLog = (record: RequestRecord) => void;

/** Describes a finished request for the log. Never contains a prompt, an answer or a key. */
export interface RequestRecord {
  event: 'request' | 'stream_ended' | 'stream_failed' | 'caller_left';
  requestId: string;
  method: string;
  path: string;
  status: number;
  /** Milliseconds since the request arrived. */
  ms: number;
  /** True if the answer is a stream, which continues after the event `request`. */
  stream?: true;
  /** Name of the API key. */
  key?: string;
  /** Ids of the request's trace, of this server's span and of the caller's span, and the flags that the caller sent. */
  traceId?: string;
  spanId?: string;
  parentId?: string;
  traceFlags?: string;
  error?: unknown;
}

/** Describes the values that middleware sets on a request. */
export interface AppEnv {
  Variables: {
    requestId: string;
    /** Set if the caller sent a valid `traceparent`, or with `beginTraces`. */
    trace?: TraceContext;
    /** Time at which the request arrived, in milliseconds of the app's clock. */
    begin: number;
    /** The API of the route, or the other format that it follows; it decides the statuses and bodies of errors. */
    api: ErrorFormat;
    /** The request's share of the budget for bodies. */
    body: BodyShare;
    /** The caller's API key; set if the route needs one. */
    key?: ApiKey;
  };
}

export type AppContext = Context<AppEnv>;
export type AppHandler = Handler<AppEnv>;
export type AppMiddleware = MiddlewareHandler<AppEnv>;

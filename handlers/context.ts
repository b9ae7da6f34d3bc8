import type { Context, Handler, MiddlewareHandler } from 'hono';
import type { InferenceBackend } from '../lib/backend.ts';
import type { Clock } from '../lib/clock.ts';
import type { Api, ErrorFormat } from '../lib/error-status.ts';
import type { ModelHost } from '../lib/host.ts';
import type { BodyShare } from '../lib/json/body-budget.ts';
import type { ApiKey, KeyStore, Quota } from '../lib/keys.ts';
import type { QuestionSettings } from '../lib/questions/settings.ts';
import type { Pages } from './pages.ts';

/** What the handlers are given from outside. */
export interface AppDeps {
  /** What answers. */
  backend: InferenceBackend;
  /** What owns this machine's models. Absent, as at the edge: no status, load, unload, download and delete routes. */
  host?: ModelHost;
  /** The interfaces to mount; both by default. */
  apis?: readonly Api[];
  /** Who may ask. The decision service refuses every call without a key that is in here. */
  keys?: KeyStore;
  /** How the decision formats answer where a request does not say; default: `DEFAULT_SETTINGS`. */
  questions?: Partial<QuestionSettings>;
  /** Default: no limits. */
  quota?: Quota;
  /**
   * The model server needs a key too, on every route but `GET /` and `/health`, and one with the admin scope to load, unload,
   * download and delete: for any address but the loopback one.
   */
  keyForModels?: boolean;
  /** Refuses foreign Host names and Origins. Absent: only for a host that does this itself, or is not on a user's machine. */
  guard?: GuardSettings;
  /** Answers `GET /metrics`, in Prometheus' text form. Absent: there is no such route. */
  metrics?: () => Promise<Response>;
  /** Pages for people: the playground at `/playground`, the API reference at `/docs`. They need no key. Default: none. */
  pages?: Pages;
  /** Bytes that the bodies of all requests under way may have together; each may have 64 KiB in any case. Default: 256 MiB. */
  bodyBytes?: number;
  /** Milliseconds of silence after which a stream sends a comment; default 1500. */
  heartbeatMs?: number;
  /** Default: the system's. */
  clock?: Clock;
  /** Default: a random UUID. */
  newRequestId?: () => string;
  /** Told once of each request, and of each stream that fails or is left. Default: nothing is logged. */
  log?: RequestLog;
}

/** The dependencies with their defaults filled in. */
export type Services = AppDeps &
  Required<Pick<AppDeps, 'clock' | 'newRequestId' | 'log' | 'heartbeatMs' | 'bodyBytes'>>;

export interface GuardSettings {
  /** Accept loopback Host names alone (against DNS rebinding). */
  loopbackOnly: boolean;
  /** Origins besides the server's own, such as `http://localhost:3000`; they get CORS headers. */
  allowOrigins: readonly string[];
}

export type RequestLog = (record: RequestRecord) => void;

/** Never holds a prompt, an answer or a key. */
export interface RequestRecord {
  event: 'request' | 'stream_failed' | 'caller_left';
  requestId: string;
  method: string;
  path: string;
  status: number;
  /** Milliseconds since the request came in. */
  ms: number;
  /** Name of the API key. */
  key?: string;
  error?: unknown;
}

/** What one request carries through its middleware. */
export interface AppEnv {
  Variables: {
    requestId: string;
    /** When the request came in, on the clock of the app. */
    begin: number;
    /** Which interface the route belongs to, or which format it speaks: decides the statuses and bodies of its errors. */
    api: ErrorFormat;
    /** The request's part of the room for bodies. */
    body: BodyShare;
    /** Set where the route needs a key. */
    key?: ApiKey;
  };
}

export type AppContext = Context<AppEnv>;
export type AppHandler = Handler<AppEnv>;
export type AppMiddleware = MiddlewareHandler<AppEnv>;

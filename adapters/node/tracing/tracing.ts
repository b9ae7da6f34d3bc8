import type { RequestLog } from '../../../handlers/context.ts';
import type { Answered } from '../../../runtime/supervisor/engine-backend.ts';

/** Exports a span for each request, and child spans for its stages in the engine. */
export interface Tracing {
  /** Exports the request of a log record if it has ended and has a trace. */
  log: RequestLog;
  /** Records the stages of a request that the engine has just answered. Call it before `log` for that request. */
  answered(answered: Answered): void;
  /** Sends the remaining spans and ends the export, for at most two seconds. Never rejects. */
  close(): Promise<void>;
}

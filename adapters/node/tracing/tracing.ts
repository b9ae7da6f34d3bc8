import type { RequestLog } from '../../../handlers/context.ts';
import type { Answered } from '../../../runtime/supervisor/engine-backend.ts';

/** Exports a span for each request, and child spans for its stages in the engine. */
export interface Tracing {
  /** Exports the request of a log record once it has ended. */
  log: RequestLog;
  /** Records the stages of a request that the engine has answered. */
  answered(answered: Answered): void;
  /** Sends the remaining spans and ends the export. */
  close(): Promise<void>;
}

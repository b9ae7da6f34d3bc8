import type { RequestLog } from '../../../handlers/context.ts';
import type { Answered } from '../../../runtime/supervisor/engine-backend.ts';

/** Exports a span for each request, and spans for its stages in the engine. */
export interface Tracing {
  log: RequestLog;
  answered(answered: Answered): void;
  /** Sends the spans that have not been sent yet, and ends the export. */
  close(): Promise<void>;
}

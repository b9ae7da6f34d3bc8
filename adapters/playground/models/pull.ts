import type { DownloadProgress, DownloadResponse } from '../../../lib/schema/model-operations.ts';
import { ApiError, call } from '../api.ts';
import { readEvents } from '../read-events.ts';

/**
 * Lets the server download and compile a model, and calls `onProgress` with each report. Returns the final report.
 * Throws `ApiError` if the server refuses or fails, or if the reports end early. The server continues if the page is
 * closed.
 */
export async function pull(model: string, onProgress: (progress: DownloadProgress) => void): Promise<DownloadResponse> {
  const body = { model, allow_download: true };
  const response = await call('/v1/models/download', { body, accept: 'text/event-stream' });
  let finished: DownloadResponse | undefined;
  await readEvents(response, (data) => {
    const event: DownloadProgress | DownloadResponse = JSON.parse(data);
    if (event.status === 'success') finished = event;
    else onProgress(event);
  });
  if (finished) return finished;
  const message = 'The server stopped reporting. Pull the model again: what it has downloaded is kept.';
  throw new ApiError(0, 'stream_ended', message);
}

import type { DownloadProgress, DownloadResponse } from '../../../lib/schema/model-operations.ts';
import { ApiError, call } from '../api.ts';
import { readEvents } from '../read-events.ts';

/**
 * Lets the server download and compile a model, and reports the progress. Throws `ApiError` for an error response, and
 * if the stream ends before the model is ready. The server continues if the page is closed.
 */
export async function pull(model: string, onProgress: (progress: DownloadProgress) => void): Promise<void> {
  const body = { model, allow_download: true };
  const response = await call('/v1/models/download', { body, accept: 'text/event-stream' });
  let finished = false;
  await readEvents(response, (data) => {
    const event: DownloadProgress | DownloadResponse = JSON.parse(data);
    if (event.status === 'success') finished = true;
    else onProgress(event);
  });
  const message = 'The server stopped reporting. The download may still run: reload the list.';
  if (!finished) throw new ApiError(0, 'stream_ended', message);
}

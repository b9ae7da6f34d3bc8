import * as v from 'valibot';
import { AssayError } from '../../../lib/errors.ts';
import { DownloadProgress, DownloadResponse } from '../../../lib/schema/model-operations.ts';
import { downloadMoments, progressView } from './progress.ts';
import { type Connection, errorOf, eventsOf } from './request.ts';

/**
 * Lets the server download (with `allow_download`) and compile a model, and shows the progress unless `quiet` is true.
 * Returns the server's report.
 *
 * @throws AssayError the error that the server reports; `internal_error` if the stream ends without a result
 * @throws NoServerError if the connection breaks
 */
export async function prepareModel(
  connection: Connection,
  body: { model: string; max_prompt_len?: number; allow_download: boolean },
  { quiet }: { quiet: boolean },
): Promise<DownloadResponse> {
  const response = await connection.request('/v1/models/download', { body, accept: 'text/event-stream' });
  const view = progressView(quiet, downloadMoments());
  try {
    for await (const data of eventsOf(response)) {
      const done = v.safeParse(v.pipe(v.string(), v.parseJson(), DownloadResponse), data);
      if (done.success) return done.output;
      const failure = errorOf(data);
      if (failure) throw failure;
      const progress = v.safeParse(v.pipe(v.string(), v.parseJson(), DownloadProgress), data);
      if (progress.success) view.show(progress.output);
    }
  } finally {
    view.end();
  }
  throw new AssayError('internal_error', 'The download ended without a result. Run the command again to resume it.');
}

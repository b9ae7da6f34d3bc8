import { AssayError } from '../lib/errors.ts';
import type { HostDownloadEvent, ModelHost } from '../lib/models/host.ts';
import type { DownloadProgress, DownloadRequest, DownloadResponse } from '../lib/schema/model-operations.ts';
import type { AppContext, Services } from './context.ts';
import { eventStream, sseData } from './event-stream.ts';
import { allowedModel } from './model-operations.ts';

/**
 * Handles `POST /download` and `POST /v1/models/download`. Answers when the model is downloaded and compiled; with
 * `Accept: text/event-stream`, streams the progress. If the caller disconnects, the download continues unless it is
 * still fetching the list of files (`ModelHost.download`).
 */
export function download(host: ModelHost, services: Services) {
  return async (c: AppContext, sent: DownloadRequest): Promise<Response> => {
    const model = allowedModel(c, sent.model);
    const { max_prompt_len: maxPromptLen, allow_download: allowDownload } = sent;
    const options = { allowDownload, ...(maxPromptLen === undefined ? {} : { maxPromptLen }) };
    const leaving = new AbortController();
    const left = AbortSignal.any([leaving.signal, c.req.raw.signal]);
    const events = host.download(model, options, left)[Symbol.asyncIterator]();
    // An error before the first event can still be answered with its HTTP status.
    const first = await events.next();
    const all = reports(model, first, events);
    if (acceptsEvents(c.req.header('accept'))) return eventStream(c, services, texts(all), leaving);
    for await (const report of all) {
      if (report.status === 'success') return c.json(report);
    }
    throw new AssayError('internal_error', 'The download ended without a result. Send the request again to resume it.');
  };
}

function acceptsEvents(accept: string | undefined): boolean {
  return (accept ?? '').split(',').some((one) => one.split(';')[0]?.trim().toLowerCase() === 'text/event-stream');
}

async function* texts(all: AsyncIterable<DownloadProgress | DownloadResponse>): AsyncGenerator<string> {
  for await (const report of all) yield sseData(report);
}

async function* reports(
  model: string,
  first: IteratorResult<HostDownloadEvent>,
  events: AsyncIterator<HostDownloadEvent>,
): AsyncGenerator<DownloadProgress | DownloadResponse> {
  try {
    for (let result = first; !result.done; result = await events.next()) {
      const event = result.value;
      if (event.type === 'done') {
        yield { status: 'success', ...event.report };
        return;
      }
      const { type: _, stage, ...counts } = event;
      yield { status: stage, model, ...counts };
    }
  } finally {
    await events.return?.();
  }
}

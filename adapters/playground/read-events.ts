import { createParser } from 'eventsource-parser';
import { ApiError } from './api.ts';

/**
 * Calls `onData` with the data of each server-sent event, until the stream ends or its connection is lost. The caller
 * must check that the last event has arrived. Throws `ApiError` for an error event (docs/model-api.md, M-10 and M-17),
 * an `AbortError` if the request was aborted, and any error of `onData`.
 */
export async function readEvents(response: Response, onData: (data: string) => void): Promise<void> {
  const parser = createParser({
    onEvent({ data }) {
      const { error } = data === '[DONE]' ? {} : JSON.parse(data);
      if (error) throw new ApiError(response.status, error.code, error.message, error.param);
      onData(data);
    },
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const next = () =>
    reader?.read().catch((cause) => {
      if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
      return undefined;
    });
  for (let read = await next(); read && !read.done; read = await next()) parser.feed(read.value);
}

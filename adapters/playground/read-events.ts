import { createParser } from 'eventsource-parser';
import { ApiError } from './api.ts';

/**
 * Calls `onData` with the data of each server-sent event. Throws `ApiError` for an error event (rules M-10 and M-17).
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
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) parser.feed(read.value);
}

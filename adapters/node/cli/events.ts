import { createParser } from 'eventsource-parser';
import { chunksOf } from '../../../runtime/hub/chunks-of.ts';
import { NoServerError } from './exit-code.ts';

/**
 * Yields the data of each server-sent event of a response, as text.
 *
 * @throws NoServerError if the connection breaks or the request is aborted before the response ends
 */
export async function* eventsOf(response: Response): AsyncGenerator<string> {
  const ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => void ready.push(data) });
  const decoder = new TextDecoder();
  if (!response.body) return;
  try {
    for await (const chunk of chunksOf(response)) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* ready.splice(0);
    }
  } catch (cause) {
    throw new NoServerError(
      'The connection to the server broke before the answer was complete. Is the server still running?',
      { cause },
    );
  }
}

import { type ResponsesHead, responsesEvents } from '../lib/responses/events.ts';
import { responsesRequest } from '../lib/responses/request.ts';
import { isFunctionTool, type ResponsesSentTool } from '../lib/schema/chat-tools.ts';
import type { ResponsesRequest } from '../lib/schema/responses-request.ts';
import type { ResponsesAnswer, ResponsesEvent } from '../lib/schema/responses-response.ts';
import { NO_LIMIT } from '../lib/schema/sampling-fields.ts';
import { compiled } from './compiled.ts';
import type { AppContext, Services } from './context.ts';
import { errorBody } from './error-response.ts';
import { eventStream, sseEvent } from './event-stream.ts';
import { startChat } from './started-chat.ts';

/**
 * Handles `POST /v1/responses`, a chat in the format of OpenAI's Responses API: answers with one JSON body or, if
 * `stream` is true, with a stream of events. Responses are not stored.
 */
export function responses(services: Services) {
  return async (c: AppContext, sent: ResponsesRequest): Promise<Response> => {
    const { model, created, events, leaving } = await startChat(
      c,
      services,
      await compiled(c, c.get('text'), () => responsesRequest(sent)),
    );
    const head = responsesHead(sent, { id: `resp_${c.get('requestId')}`, created, model });
    const all = responsesEvents(head, events);
    const warn = (response: Response) => warnOfTools(response, sent.tools ?? []);
    if (!sent.stream) return warn(c.json(await lastAnswer(all)));
    let next = 0;
    const failure = (error: unknown) => {
      const { code, message, param = null } = errorBody(error, 'models').error;
      return sseEvent('error', { type: 'error', sequence_number: next, code, message, param });
    };
    const texts = async function* () {
      for await (const event of all) {
        next = event.sequence_number + 1;
        yield sseEvent(event.type, event);
      }
    };
    return warn(eventStream(c, services, texts(), leaving, failure));
  };
}

/** Names the tools that are left out of a request, because they are not functions, in a header of the response. */
function warnOfTools(response: Response, tools: readonly ResponsesSentTool[]): Response {
  const others = tools.flatMap((tool, i) => (isFunctionTool(tool) ? [] : [`tools[${i}] (${tool.type})`]));
  if (others.length === 0) return response;
  const more = others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : '';
  const named = others
    .slice(0, MOST_NAMED)
    .join(', ')
    .replaceAll(/[^\x20-\x7e]/g, '?');
  response.headers.set('assay-warning', `left out, because only functions are supported: ${named}${more}`);
  return response;
}

const MOST_NAMED = 8;

async function lastAnswer(events: AsyncIterable<ResponsesEvent>): Promise<ResponsesAnswer | undefined> {
  let last: ResponsesAnswer | undefined;
  for await (const event of events) if ('response' in event) last = event.response;
  return last;
}

/**
 * Returns the members of a response that are known before the model answers. Most repeat the request or its defaults.
 */
function responsesHead(
  sent: ResponsesRequest,
  { id, created, model }: { id: string; created: number; model: string },
): ResponsesHead {
  return {
    id,
    object: 'response',
    created_at: created,
    error: null,
    instructions: sent.instructions ?? null,
    max_output_tokens: sent.max_output_tokens === NO_LIMIT ? null : (sent.max_output_tokens ?? null),
    metadata: sent.metadata ?? {},
    model,
    parallel_tool_calls: sent.parallel_tool_calls ?? true,
    previous_response_id: null,
    store: false,
    temperature: sent.temperature ?? null,
    text: { format: sent.text?.format ?? { type: 'text' } },
    tool_choice: sent.tool_choice ?? 'auto',
    tools: (sent.tools ?? []).filter(isFunctionTool),
    top_p: sent.top_p ?? null,
    truncation: 'disabled',
  };
}

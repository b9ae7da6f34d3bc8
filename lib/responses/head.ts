import { isFunctionTool } from '../schema/chat-tools.ts';
import type { ResponsesRequest } from '../schema/responses-request.ts';
import { NO_LIMIT } from '../schema/sampling-fields.ts';
import type { ResponsesHead } from './events.ts';

/**
 * Returns the members of a response that are known before the model answers. Most repeat the request or its defaults.
 */
export function responsesHead(
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

import type { ChatEvent } from '../backend.ts';
import { endedEarly } from '../chat/completion.ts';
import type { ResponsesAnswer, ResponsesEvent } from '../schema/responses-response.ts';
import { callItem } from './call-item.ts';
import { type OutputItem, outputItem, type UnnumberedEvent } from './output-item.ts';

type Finish = Extract<ChatEvent, { type: 'finish' }>;

/** Holds the members of a response that are known before the model answers. */
export type ResponsesHead = Omit<ResponsesAnswer, 'status' | 'output' | 'usage' | 'incomplete_details' | 'metrics'>;

/**
 * Yields the events of a response from the chat events after `start`: those of its life cycle, and the begin, text and
 * end of each output item (reasoning, message, function calls). The last event contains the whole response
 * (docs/interface.md, M-25).
 *
 * @throws AssayError `engine_failed` if the chat events end before `finish`; also every error that `chat` throws
 */
export async function* responsesEvents(
  head: ResponsesHead,
  chat: AsyncIterable<ChatEvent>,
): AsyncGenerator<ResponsesEvent> {
  let number = 0;
  for await (const event of unnumbered(head, chat)) yield { ...event, sequence_number: number++ } as ResponsesEvent;
}

async function* unnumbered(head: ResponsesHead, chat: AsyncIterable<ChatEvent>): AsyncGenerator<UnnumberedEvent> {
  const begun = { ...head, status: 'in_progress', output: [], usage: null, incomplete_details: null } as const;
  yield { type: 'response.created', response: { ...begun, output: [] } };
  yield { type: 'response.in_progress', response: { ...begun, output: [] } };
  const items: OutputItem[] = [];
  for await (const event of chat) {
    const open = items.at(-1);
    if (event.type === 'finish') {
      if (open) yield* open.end(event.reason === 'stop' ? 'completed' : 'incomplete');
      yield finished(head, items, event);
      return;
    }
    if (event.type === 'start') continue;
    if (open && !continues(event, open)) yield* open.end('completed');
    const item = open && continues(event, open) ? open : newItem(event, head.id, items.length);
    if (item !== open) {
      items.push(item);
      yield* item.begin();
    }
    if (event.type === 'tool_call') yield* item.write(event.arguments);
    else yield* item.write(event.text, event.type === 'content' ? event.logprobs : undefined);
  }
  throw endedEarly();
}

type Written = Exclude<ChatEvent, { type: 'start' | 'finish' }>;

/** Tells whether an event continues this item instead of beginning a new one. */
function continues(event: Written, { kind }: OutputItem): boolean {
  return kind === event.type && !(event.type === 'tool_call' && event.name !== undefined);
}

function newItem(event: Written, responseId: string, index: number): OutputItem {
  if (event.type !== 'tool_call') return outputItem(event.type, responseId, index);
  return callItem(responseId, { name: event.name ?? '', call: event.index, index });
}

function finished(
  head: ResponsesHead,
  items: readonly OutputItem[],
  { reason, usage, metrics }: Finish,
): UnnumberedEvent {
  const { promptTokens, completionTokens } = usage;
  const reasoned = items.some(({ kind }) => kind === 'reasoning');
  const response: ResponsesAnswer = {
    ...head,
    status: reason === 'stop' ? 'completed' : 'incomplete',
    incomplete_details: reason === 'stop' ? null : { reason: reason === 'length' ? 'max_output_tokens' : reason },
    output: items.map((item) => item.whole()),
    usage: {
      input_tokens: promptTokens,
      // Writing to the prefix cache costs nothing, so it is not counted.
      input_tokens_details: { cached_tokens: metrics.cached_tokens ?? 0, cache_write_tokens: 0 },
      output_tokens: completionTokens,
      ...(reasoned ? {} : { output_tokens_details: { reasoning_tokens: 0 } }),
      total_tokens: promptTokens + completionTokens,
    },
    metrics,
  };
  return { type: reason === 'stop' ? 'response.completed' : 'response.incomplete', response };
}

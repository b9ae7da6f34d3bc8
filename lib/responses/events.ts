import type { ChatEvent, TokenLogprob } from '../backend.ts';
import { endedEarly, tokenLogprobs, toolCallId } from '../chat/completion.ts';
import type { ResponsesAnswer, ResponsesEvent, ResponsesOutputItem } from '../schema/responses-response.ts';

type Finish = Extract<ChatEvent, { type: 'finish' }>;

/** Holds the members of a response that are known before the model answers. */
export type ResponsesHead = Omit<ResponsesAnswer, 'status' | 'output' | 'usage' | 'incomplete_details' | 'metrics'>;

/**
 * Yields the events of a response from the chat events after `start`: those of its life cycle, and the begin, text and
 * end of each output item (reasoning, message, function calls). The last event contains the whole response
 * (docs/model-api.md, M-25).
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

interface NewCall {
  name: string;
  /** Index of the call among the response's function calls, from 0. */
  call: number;
  /** Index of the item in the response's `output`. */
  index: number;
}

/** Creates the output item of a function call. Its `id` and `call_id` are derived from the response's id. */
function callItem(responseId: string, { name, call, index }: NewCall): OutputItem {
  const call_id = toolCallId(responseId, call);
  const id = call_id.replace(/^call_/u, 'fc_');
  const at = { item_id: id, output_index: index };
  let text = '';
  let status: ResponsesOutputItem['status'] = 'in_progress';
  const item = (): ResponsesOutputItem => ({ id, type: 'function_call', status, call_id, name, arguments: text });
  return {
    kind: 'tool_call',
    begin: () => [{ type: 'response.output_item.added', output_index: index, item: item() }],
    write(delta) {
      text += delta;
      return delta === '' ? [] : [{ type: 'response.function_call_arguments.delta', ...at, delta }];
    },
    end(ended) {
      status = ended;
      return [
        { type: 'response.function_call_arguments.done', ...at, name, arguments: text },
        { type: 'response.output_item.done', output_index: index, item: item() },
      ];
    },
    whole: item,
  };
}

type Part = Extract<ResponsesEvent, { part: unknown }>['part'];
type Unnumbered<T> = T extends unknown ? Omit<T, 'sequence_number'> : never;
/** Represents an event of a stream before it gets its position there, `sequence_number`. */
type UnnumberedEvent = Unnumbered<ResponsesEvent>;

/**
 * Builds the events of one output item of a response, and the item itself. The methods are called in the order `begin`,
 * `write` (any number of times), `end`, `whole`.
 */
interface OutputItem {
  /** Type of the chat events whose text this item contains. */
  kind: 'reasoning' | 'content' | 'tool_call';
  /** Returns the events that announce the empty item. */
  begin(): UnnumberedEvent[];
  /** Adds text to the item, and returns the events that report it. */
  write(text: string, logprobs?: readonly TokenLogprob[]): UnnumberedEvent[];
  /** Ends the item with this status, and returns the events with its whole content. */
  end(status: 'completed' | 'incomplete'): UnnumberedEvent[];
  /** Returns the complete item. */
  whole(): ResponsesOutputItem;
}

/**
 * Creates the output item of reasoning or of the message, whose id is derived from the response's id. `index` is the
 * item's index in the response's `output`.
 */
function outputItem(kind: 'reasoning' | 'content', responseId: string, index: number): OutputItem {
  const reasons = kind === 'reasoning';
  const id = responseId.replace(/^resp_/, reasons ? 'rs_' : 'msg_');
  const at = { item_id: id, output_index: index, content_index: 0 } as const;
  const type = reasons ? 'response.reasoning_text' : 'response.output_text';
  let text = '';
  let status: ResponsesOutputItem['status'] = 'in_progress';
  const logprobs: ReturnType<typeof tokenLogprobs> = [];

  const part = (): Part =>
    reasons
      ? { type: 'reasoning_text', text }
      : { type: 'output_text', text, annotations: [], logprobs: [...logprobs] };
  const item = (content: Part[]): ResponsesOutputItem =>
    (reasons
      ? { id, type: 'reasoning', status, summary: [], content }
      : { id, type: 'message', role: 'assistant', status, content }) as ResponsesOutputItem;

  return {
    kind,
    begin: () => [
      { type: 'response.output_item.added', output_index: index, item: item([]) },
      { type: 'response.content_part.added', ...at, part: part() },
    ],
    write(delta, tokens = []) {
      text += delta;
      const added = tokenLogprobs(tokens);
      logprobs.push(...added);
      return [{ type: `${type}.delta`, ...at, delta, ...(reasons ? {} : { logprobs: added }) }];
    },
    end(ended) {
      status = ended;
      return [
        { type: `${type}.done`, ...at, text, ...(reasons ? {} : { logprobs: [...logprobs] }) },
        { type: 'response.content_part.done', ...at, part: part() },
        { type: 'response.output_item.done', output_index: index, item: item([part()]) },
      ];
    },
    whole: () => item([part()]),
  };
}

import type { TokenLogprob } from '../backend.ts';
import { tokenLogprobs } from '../chat/completion.ts';
import type { ResponsesEvent, ResponsesOutputItem } from '../schema/responses-response.ts';

type Part = Extract<ResponsesEvent, { part: unknown }>['part'];
type Unnumbered<T> = T extends unknown ? Omit<T, 'sequence_number'> : never;
/** Represents an event of a stream before it gets its position there, `sequence_number`. */
export type UnnumberedEvent = Unnumbered<ResponsesEvent>;

/**
 * Builds the events of one output item of a response, and the item itself. The methods are called in the order `begin`,
 * `write` (any number of times), `end`, `whole`.
 */
export interface OutputItem {
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
export function outputItem(kind: 'reasoning' | 'content', responseId: string, index: number): OutputItem {
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

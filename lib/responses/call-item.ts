import { toolCallId } from '../chat/completion.ts';
import type { ResponsesOutputItem } from '../schema/responses-response.ts';
import type { OutputItem } from './output-item.ts';

interface NewCall {
  name: string;
  /** Index of the call among the response's function calls, from 0. */
  call: number;
  /** Index of the item in the response's `output`. */
  index: number;
}

/** Creates the output item of a function call. Its `id` and `call_id` are derived from the response's id. */
export function callItem(responseId: string, { name, call, index }: NewCall): OutputItem {
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

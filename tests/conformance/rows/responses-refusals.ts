import type { ErrorCode } from '../../../lib/errors.ts';
import type { Row } from '../row.ts';

const path = '/v1/responses';
const ping = { type: 'function', name: 'ping' };
const earlierCall = (call_id: string) => ({ type: 'function_call', call_id, name: 'ping', arguments: '{}' });
const calls = (count: number) => Array.from({ length: count }, (_, i) => earlierCall(`call_${i}`));
const messages = (count: number) => Array.from({ length: count }, () => ({ role: 'user', content: 'Hi' }));

const refused: readonly [sent: object, code: ErrorCode, param?: string][] = [
  [{}, 'missing_field', 'input'],
  [{ input: [] }, 'invalid_value', 'input'],
  [{ input: 3 }, 'invalid_type', 'input'],
  [{ input: [{ content: 'Hi' }] }, 'missing_field', 'input[0].role'],
  [{ input: [{ role: 'user' }] }, 'missing_field', 'input[0].content'],
  [{ input: [{ role: 'tool', content: 'x' }] }, 'invalid_value', 'input[0].role'],
  [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'unsupported_parameter', 'input[0].type'],
  [{ input: [{ type: 'item', role: 'user', content: 'x' }] }, 'invalid_value', 'input[0].type'],
  [{ input: [{ role: 'user', content: [{ type: 'input_file' }] }] }, 'invalid_value', 'input[0].content[0].type'],
  [{ input: 'Hi', max_output_tokens: 0 }, 'invalid_value', 'max_output_tokens'],
  [{ input: 'Hi', temperature: 3 }, 'invalid_value', 'temperature'],
  [{ input: 'Hi', store: true }, 'unsupported_parameter', 'store'],
  [{ input: 'Hi', previous_response_id: 'resp_1' }, 'unsupported_parameter', 'previous_response_id'],
  [{ input: 'Hi', conversation: 'conv_1' }, 'unsupported_parameter', 'conversation'],
  [{ input: 'Hi', prompt: { id: 'p' } }, 'unsupported_parameter', 'prompt'],
  [{ input: 'Hi', background: true }, 'unsupported_parameter', 'background'],
  [{ input: 'Hi', truncation: 'auto' }, 'unsupported_parameter', 'truncation'],
  [{ input: 'Hi', tools: [{ type: 'web_search' }], tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
  [{ input: 'Hi', tools: [{ type: 'function' }] }, 'missing_field', 'tools[0].name'],
  [{ input: 'Hi', response_format: { type: 'json_object' } }, 'unsupported_parameter', 'response_format'],
  [{ input: 'Hi', format: 'json' }, 'unsupported_parameter', 'format'],
  [{ input: 'Hi', guided_json: { type: 'object' } }, 'unsupported_parameter', 'guided_json'],
  [{ input: 'Hi', reasoning: { effort: 'much' } }, 'invalid_value', 'reasoning.effort'],
  [{ input: 'Hi', tools: [{ ...ping, name: 'a b' }] }, 'invalid_value', 'tools[0].name'],
  [{ input: 'Hi', tools: [ping, ping] }, 'invalid_value', 'tools[1].name'],
  [
    { input: 'Hi', tools: [{ ...ping, parameters: { type: 'object', not: { type: 'null' } } }] },
    'unsupported_schema',
    'tools[0].parameters.not',
  ],
  [{ input: 'Hi', tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
  [{ input: 'Hi', tools: [ping], tool_choice: { type: 'function', name: 'f' } }, 'invalid_value', 'tool_choice.name'],
  [{ input: [{ type: 'function_call', call_id: 'a', name: 'ping' }] }, 'missing_field', 'input[0].arguments'],
  [
    { input: [{ type: 'function_call', call_id: 'a', name: 'ping', arguments: 'no' }] },
    'invalid_value',
    'input[0].arguments',
  ],
  [{ input: [{ type: 'function_call_output', call_id: 'a', output: 'x' }] }, 'invalid_value', 'input[0].call_id'],
  [{ input: [earlierCall('')] }, 'invalid_value', 'input[0].call_id'],
  [
    { input: [{ role: 'user', content: 'Hi' }, ...calls(100), { type: 'reasoning', summary: [] }, ...calls(29)] },
    'invalid_value',
    'input[130]',
  ],
  [{ input: messages(4097) }, 'invalid_value', 'input'],
  [{ input: messages(4096), instructions: 'Be brief.' }, 'invalid_value', 'input'],
  [
    { input: 'Hi', text: { format: { type: 'json_schema', name: 'x', schema: { if: { type: 'object' } } } } },
    'unsupported_schema',
    'text.format.schema.if',
  ],
];

/** Requests that `POST /v1/responses` refuses before the backend is asked. docs/model-api.md, M-24. */
export const responsesRefusals: readonly Row[] = refused.map(([json, code, param]) => ({
  name: `400 ${code}: ${JSON.stringify(json)}`,
  request: { path, json },
  expect: { status: 400, error: { code, type: 'invalid_request_error', ...(param ? { param } : {}) }, calls: [] },
}));

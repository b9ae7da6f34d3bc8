import { expect, it } from 'vitest';
import { readFixture } from '../../../tests/fixture.ts';
import { createChatTemplate } from '../template/chat-template.ts';
import type { ToolFormat } from './tool-format.ts';

const source = (name: string) => readFixture(`text/${name}.jinja`);

/**
 * Lists the call formats of published templates: Qwen, Llama 3, Mistral, Devstral, Nemotron, Hermes 3, Command R+,
 * Command R7B, Granite 3.3, Qwen3-Coder, Seed-OSS, GPT-OSS. null: no format is found.
 */
const FORMATS: [string, Omit<ToolFormat, 'rest'> | null][] = [
  [
    'tools/hermes',
    {
      head: '<tool_call>\n{"name": "',
      between: '", "arguments": ',
      separator: '}\n</tool_call>\n<tool_call>\n{"name": "',
      textBefore: true,
    },
  ],
  ['tools/llama3', { head: '{"name": "', between: '", "parameters": ', separator: null, textBefore: false }],
  [
    'tools/mistral',
    {
      head: '[TOOL_CALLS][{"name": "',
      between: '", "arguments": ',
      separator: ', "id": "call00000"}, {"name": "',
      textBefore: false,
    },
  ],
  ['tools/mistral-args', { head: '[TOOL_CALLS]', between: '[ARGS]', separator: '[TOOL_CALLS]', textBefore: true }],
  [
    'tools/list',
    {
      head: '<TOOLCALL>[{"name": "',
      between: '", "arguments": ',
      separator: '}, {"name": "',
      textBefore: true,
    },
  ],
  [
    'tools/signatures',
    {
      head: '<tool_call>\n{"name": "',
      between: '", "arguments": ',
      separator: '}\n</tool_call>\n<tool_call>\n{"name": "',
      textBefore: false,
    },
  ],
  [
    'tools/actions',
    {
      head: '\nAction:\n```json\n[\n    {\n        "tool_name": "',
      between: '",\n        "parameters": ',
      separator: '\n    },\n    {\n        "tool_name": "',
      textBefore: true,
    },
  ],
  [
    'tools/plan',
    {
      head: '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "',
      between: '", "parameters": ',
      separator: '},\n    {"tool_call_id": "1", "tool_name": "',
      textBefore: false,
    },
  ],
  [
    'tools/declared',
    {
      head: '<|tool_call|>[{"name": "',
      between: '", "arguments": ',
      separator: '}, {"name": "',
      textBefore: false,
      asContent: true,
    },
  ],
  [
    'tools/xml',
    {
      head: '<tool_call>\n<function=',
      between: '>\n',
      tags: { open: '<parameter=', named: '>\n', close: '\n</parameter>\n' },
      separator: '</function>\n</tool_call>\n<tool_call>\n<function=',
      textBefore: true,
    },
  ],
  [
    'tools/seed',
    {
      head: '<seed:tool_call>\n<function=',
      between: '>\n',
      tags: { open: '<parameter=', named: '>', close: '</parameter>\n' },
      separator: '</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=',
      textBefore: true,
    },
  ],
  ['chatml', null],
  [
    'tools/harmony',
    { head: ' to=functions.', between: '<|channel|>commentary json<|message|>', separator: null, textBefore: true },
  ],
  ['harmony', null],
];

it.each(FORMATS)('%s', (name, format) => {
  const found = createChatTemplate(source(name), { bos_token: '<s>', eos_token: '</s>' }).tools();
  if (format === null) expect(found).toBeNull();
  else expect(found).toMatchObject(format);
});

it('a template that does not end with tools is an error each time, not a template without them', () => {
  const endless =
    '{% if tools %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}{% endif %}';
  const template = createChatTemplate(endless + source('chatml'), {}, { timeMs: 1000, output: 10_000 });
  for (const _ of [1, 2]) expect(() => template.tools()).toThrow(expect.objectContaining({ code: 'engine_failed' }));
});

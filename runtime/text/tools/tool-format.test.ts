import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createChatTemplate } from '../chat-template.ts';
import type { ToolFormat } from './tool-format.ts';

const source = (name: string) =>
  readFileSync(new URL(`../../../tests/fixtures/text/${name}.jinja`, import.meta.url), 'utf8');

/** Lists the forms of calls of published templates: Qwen, Llama 3, Mistral, Devstral, Nemotron. null: none is found. */
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
  ['tools/xml', null],
  ['chatml', null],
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

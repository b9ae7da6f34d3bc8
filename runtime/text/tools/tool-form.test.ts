import { Ajv } from 'ajv';
import { beforeAll, describe, expect, it } from 'vitest';
import { atOnce } from '../../../lib/at-once.ts';
import type { ToolUse } from '../../../lib/backend.ts';
import type { Json, JsonSchema } from '../../../lib/contract/answer-shape.ts';
import { Automaton, type State } from '../../../lib/grammar/automaton/automaton.ts';
import { type Tags, taggedObject } from '../../../lib/grammar/tagged-object.ts';
import { fixture, readFixture } from '../../../tests/fixture.ts';
import { allowedTokens, randomFrom } from '../../../tests/grammar/random-model.ts';
import { type ModelText, readModelText } from '../model-files.ts';
import { opensThinking } from '../template/chat-template.ts';
import { createTextModel, type TextModel } from '../text-model.ts';
import { jsonOrCalls } from './json-or-calls.ts';
import { TaggedReader, toolForm } from './tool-form.ts';

/* Tests each call format with a random model, which writes any token that the constraint allows. */

/** Control tokens of the model families whose templates are tested. */
const CONTROL = [
  ...['<tool_call>', '</tool_call>', '[TOOL_CALLS]', '[ARGS]', '<s>', '</s>', '<|eot_id|>', '<|tool_call|>'],
  ...['<|channel|>', '<|message|>', '<|start|>', '<|end|>', '<|constrain|>', '<|call|>', '<|return|>'],
  ...['<|START_THINKING|>', '<|END_THINKING|>', '<|START_ACTION|>', '<|END_ACTION|>'],
  ...['<seed:tool_call>', '</seed:tool_call>'],
];

let files: ModelText;
beforeAll(async () => {
  files = await readModelText(fixture('text/qwen'));
});

function modelWith(template: string, controlTexts: readonly string[] = CONTROL): TextModel {
  const source = readFixture(`text/tools/${template}.jinja`);
  const added = controlTexts.map((content, i) => ({ id: 610 + i, content, special: true }));
  const tokenizer = { ...files.tokenizer, added_tokens: [...files.tokenizer.added_tokens, ...added] };
  const special = { bos_token: '<s>', eos_token: template.startsWith('mistral') ? '</s>' : '<|im_end|>' };
  return createTextModel({
    ...files,
    tokenizer,
    template: source,
    tokenizerConfig: { ...files.tokenizerConfig, ...special },
  });
}

const tools: ToolUse['tools'] = [
  {
    name: 'get',
    parameters: {
      type: 'object',
      properties: {
        city: { enum: ['Köln', 'a"b', '{}'] },
        days: { type: 'array', items: { type: 'integer', minimum: 0, maximum: 12 }, minItems: 1, maxItems: 2 },
        note: { type: 'string', maxLength: 3 },
      },
      required: ['city', 'days'],
      additionalProperties: false,
    },
  },
  // The name of this tool begins with that of the other one.
  { name: 'get_all', parameters: { type: 'object', properties: {}, additionalProperties: false } },
];
const ajv = new Ajv();
const validators = new Map(tools.map(({ name, parameters }) => [name, ajv.compile(parameters)]));

interface Script {
  /** Tokens to write first. All later ones are random. */
  first: readonly number[];
  random: () => number;
}

/** Writes an answer with tools with random allowed tokens. */
function written(model: TextModel, use: ToolUse, { first, random }: Script) {
  const prompt = atOnce(model.template.render([{ role: 'user', content: 'Hi' }], { tools: use.tools }));
  const thinking = opensThinking(prompt, model.template.reasoning);
  return driven(model, toolForm(model, { use, stops: [], thinking }), { first, random });
}

type Form = ReturnType<typeof toolForm> | ReturnType<typeof jsonOrCalls>;

/** Writes an answer with random allowed tokens, calling constraint and output as the engine does. */
function driven(model: TextModel, { constraint, output }: Form, { first, random }: Script) {
  const said = { reasoning: '', content: '', calls: [] as { name: string; arguments: string }[] };
  const read = ({ reasoning, content, calls = [] }: ReturnType<typeof output.push>) => {
    said.reasoning += reasoning;
    said.content += content;
    for (const call of calls) {
      if (call.name !== undefined) said.calls.push({ name: call.name, arguments: '' });
      said.calls[call.index]!.arguments += call.arguments;
    }
  };
  const script = [...first];
  let ended = false;
  for (let step = 0; step < 300 && !ended; step++) {
    const before = constraint.fork();
    expect(before.takeForced()).toEqual(constraint.takeForced());
    if (constraint.complete) break;
    const allowed = allowedTokens(constraint, model.vocabulary);
    expect(allowedTokens(before, model.vocabulary)).toEqual(allowed);
    const token = script.shift() ?? allowed[Math.floor(random() * allowed.length)]!;
    expect(allowed).toContain(token);
    ended = model.vocabulary.end.has(token);
    if (ended) break;
    read(output.push({ token }));
    constraint.accept(token);
  }
  read(output.end(!ended && !constraint.complete));
  return { ...said, whole: ended || constraint.complete };
}

/** Lists, for each template, the text that begins a call, and whether other text may precede it. */
const FORMS = [
  ['hermes', '<tool_call>', true],
  ['llama3', '{"name', false],
  ['mistral', '[TOOL_CALLS]', true],
  ['mistral-args', '[TOOL_CALLS]', true],
  ['list', '<TOOLCALL', true],
  ['signatures', '<tool_call>', true],
  ['actions', 'Action:', false],
  ['plan', '<|START_ACTION|>', true],
  ['declared', '<|tool_call|>', true],
  ['xml', '<tool_call>', true],
  ['seed', '<seed:tool_call>', true],
  // Models omit the tag around a call at times.
  ['xml', '<function=', true],
  ['seed', '<function=', true],
] as const;
const seeds = Array.from({ length: 12 }, (_, seed) => seed);

describe.each(FORMS)('%s, %s', (template, trigger, textBefore) => {
  const use = (choice: ToolUse['choice'], parallel: boolean): ToolUse => ({ tools, choice, parallel });
  let model: TextModel;
  beforeAll(() => {
    model = modelWith(template);
  });
  const tokens = (text: string) => [...model.tokenizer.encodeTemplate(text, true)];
  const answer = () => (template === 'list' ? tokens('Hm.</think>') : []);
  const check = ({ calls, whole }: ReturnType<typeof written>) => {
    const done = whole ? calls : calls.slice(0, -1);
    for (const { name, arguments: text } of done) {
      expect(validators.get(name)?.(JSON.parse(text)), `${name} ${text}`).toBe(true);
    }
    return done.length;
  };

  it('auto: text, then calls that obey their schemas', () => {
    const first = [...answer(), ...(textBefore ? tokens('Let me look.\n') : []), ...tokens(trigger)];
    let calls = 0;
    for (const seed of seeds) {
      const said = written(model, use('auto', true), { first, random: randomFrom(seed) });
      expect(said.content).toBe(textBefore ? 'Let me look.' : '');
      calls += check(said);
    }
    expect(calls).toBeGreaterThan(seeds.length / 2);
  });

  it('auto: what begins no call is text', () => {
    const text = `No ${textBefore ? trigger.slice(0, -2) : trigger} here`;
    const plain = [...answer(), ...[...text].flatMap((letter) => [...model.tokenizer.encodeUser(letter, true)])];
    const said = written(model, use('auto', true), { first: [...plain, 602], random: randomFrom(1) });
    expect(said).toMatchObject({ content: text, calls: [] });
  });

  it.each([true, false])('required, parallel %s: nothing but calls', (parallel) => {
    for (const seed of seeds) {
      const said = written(model, use('required', parallel), { first: answer(), random: randomFrom(seed) });
      // A model that may reason does so in half of the answers, and its random reasoning does not end.
      if (said.calls.length === 0) expect(said.whole).toBe(false);
      expect(said.content).toBe('');
      check(said);
      if (!parallel) expect(said.calls.length).toBeLessThanOrEqual(1);
    }
  });

  it('a named tool', () => {
    for (const name of ['get', 'get_all']) {
      const said = written(model, use({ name }, false), { first: answer(), random: randomFrom(2) });
      for (const call of said.calls) expect(call.name).toBe(name);
      if (template !== 'hermes') expect(said.calls).toHaveLength(1);
    }
  });
});

describe('JSON or calls', () => {
  const shape = {
    kind: 'schema',
    schema: { type: 'object', properties: { ok: { enum: [1, 2] } }, required: ['ok'] },
  } as const;
  const use: ToolUse = { tools, choice: 'auto', parallel: true };
  const read = (model: TextModel, first: readonly number[], random: () => number) => {
    const { constraint, output } = jsonOrCalls(model, { use, shape, stops: [] });
    return driven(model, { constraint, output }, { first, random });
  };
  const isJson = (text: string) => [1, 2].includes(JSON.parse(text).ok);

  it.each(['hermes', 'mistral', 'mistral-args', 'list', 'signatures', 'actions', 'plan', 'declared', 'xml', 'seed'])(
    '%s: each answer is either',
    (template) => {
      const model = modelWith(template);
      const called = new Set<boolean>();
      for (const seed of seeds) {
        const { content, calls, reasoning, whole } = read(model, [], randomFrom(seed));
        called.add(calls.length > 0);
        expect(reasoning).toBe('');
        if (calls.length === 0) expect(isJson(content)).toBe(true);
        else expect(content).toBe('');
        for (const call of whole ? calls : calls.slice(0, -1)) {
          expect(validators.get(call.name)?.(JSON.parse(call.arguments))).toBe(true);
        }
      }
      expect(called).toContain(true);
      const [open] = model.tokenizer.encodeUser('{', true);
      expect(isJson(read(model, [open!], randomFrom(0)).content)).toBe(true);
    },
  );

  it.each(['llama3', 'harmony'])('%s: refused, because calls look like JSON or follow a header', (template) => {
    expect(() => jsonOrCalls(modelWith(template), { use, shape, stops: [] })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'tools' }),
    );
  });

  it('a cut answer is completed', () => {
    const model = modelWith('hermes');
    const { output } = jsonOrCalls(model, { use, shape, stops: [] });
    expect(output.end(true).content).toBe('{"ok":null}');
  });
});

it('ends after 128 calls: no message of a chat may have more', () => {
  const model = modelWith('mistral');
  const use: ToolUse = { tools: tools.slice(1), choice: 'required', parallel: true };
  const { constraint } = toolForm(model, { use, stops: [], thinking: false });
  for (let step = 0; step < 2_000 && !constraint.complete; step++) {
    if (constraint.takeForced().length > 0) continue;
    const [token] = allowedTokens(constraint, model.vocabulary).filter((one) => !model.vocabulary.end.has(one));
    constraint.accept(token!);
  }
  expect(constraint.complete).toBe(true);
  expect(constraint.calls).toHaveLength(128);
});

it('a forced call comes after the reasoning', () => {
  const model = modelWith('hermes');
  const first = [...model.tokenizer.encodeTemplate('<think>\nI have to <tool_call> now.\n</think>', true)];
  const said = written(model, { tools, choice: 'required', parallel: false }, { first, random: randomFrom(3) });
  // `<tool_call>` is a special token here, which the text does not show.
  expect(said.reasoning).toBe('I have to  now.');
  expect(said.calls).toHaveLength(1);
});

it.each(['<tool_call', '<function='])('auto: %s begins a call where tags around calls are plain text', (begin) => {
  const model = modelWith('xml', []);
  const first = [...`Let me <look>.\n${begin}`].flatMap((letter) => [...model.tokenizer.encodeUser(letter, true)]);
  const use: ToolUse = { tools: tools.slice(1), choice: 'auto', parallel: false };
  const said = written(model, use, { first, random: randomFrom(3) });
  const calls = [{ name: 'get_all', arguments: '{}' }];
  expect(said).toEqual({ reasoning: '', content: 'Let me <look>.', calls, whole: true });
});

it('a plan before a call is reasoning', () => {
  const model = modelWith('plan');
  const text = '<|START_THINKING|>I look it up.<|END_THINKING|><|START_ACTION|>';
  const first = [...model.tokenizer.encodeTemplate(text, true)];
  const said = written(model, { tools, choice: 'auto', parallel: false }, { first, random: randomFrom(3) });
  expect(said).toMatchObject({ reasoning: 'I look it up.', content: '' });
  expect(said.calls).toHaveLength(1);
});

describe('harmony', () => {
  const ANALYSIS = '<|channel|>analysis<|message|>I look it up.<|end|><|start|>assistant';
  const PREAMBLE = '<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant';
  let model: TextModel;
  beforeAll(() => {
    model = modelWith('harmony');
  });
  const tokens = (text: string) => [...model.tokenizer.encodeTemplate(text, true)];

  it.each([
    [' to=', '', ''],
    ['<|channel|>commentary to=', '', ''],
    [`${ANALYSIS} to=`, 'I look it up.', ''],
    [`${ANALYSIS}<|channel|>commentary to=`, 'I look it up.', ''],
    [`${PREAMBLE} to=`, '', 'Let me look.'],
    [`${ANALYSIS}${PREAMBLE}<|channel|>commentary to=`, 'I look it up.', 'Let me look.'],
  ])('auto: %j begins a call that obeys its schema', (begin, reasoning, content) => {
    for (const seed of seeds) {
      const said = written(
        model,
        { tools, choice: 'auto', parallel: true },
        { first: tokens(begin), random: randomFrom(seed) },
      );
      expect(said).toMatchObject({ reasoning, content, whole: true });
      const [call, ...others] = said.calls;
      expect(others).toEqual([]);
      expect(validators.get(call?.name ?? '')?.(JSON.parse(call?.arguments ?? ''))).toBe(true);
    }
  });

  it('auto: an answer that mentions a recipient is text', () => {
    const first = tokens('<|channel|>final<|message|>Write to=functions.get here<|im_end|>');
    const said = written(model, { tools, choice: 'auto', parallel: true }, { first, random: randomFrom(1) });
    expect(said).toMatchObject({ content: 'Write to=functions.get here', reasoning: '', calls: [] });
  });

  it('required and named: nothing but the call', () => {
    for (const choice of ['required', { name: 'get_all' }] as const) {
      const said = written(model, { tools, choice, parallel: false }, { first: [], random: randomFrom(4) });
      expect(said).toMatchObject({ content: '', reasoning: '', whole: true });
      expect(said.calls).toHaveLength(1);
    }
  });

  it('writes the header of the call as the channel of the message requires', () => {
    const header = (begin: string) => {
      const { template, tokenizer, vocabulary } = model;
      const use: ToolUse = { tools, choice: 'auto', parallel: false };
      const { constraint } = toolForm(
        { template, tokenizer, vocabulary, sampling: files.sampling },
        { use, stops: [], thinking: false },
      );
      for (const token of tokens(`${begin} to=functions.get_all`)) constraint.accept(token);
      const rest: number[] = [];
      for (let step = 0; step < 20 && !constraint.complete; step++) {
        rest.push(...constraint.takeForced());
        if (constraint.complete) break;
        const token = allowedTokens(constraint, vocabulary)[0]!;
        rest.push(token);
        constraint.accept(token);
      }
      return rest.map((token) => new TextDecoder().decode(vocabulary.spelling(token))).join('');
    };
    expect(header('')).toMatch(/^<\|channel\|>commentary json<\|message\|>\{\s*\}$/u);
    expect(header('<|channel|>commentary')).toMatch(/^ <\|constrain\|>json<\|message\|>\{\s*\}$/u);
  });
});

const QWEN: Tags = { open: '<parameter=', named: '>\n', close: '\n</parameter>\n' };
const SEED: Tags = { open: '<parameter=', named: '>', close: '</parameter>\n' };

const schema: JsonSchema = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    size: { type: 'integer', minimum: 1 },
    kind: { enum: ['a', 'ab', 1, null] },
    any: { type: ['string', 'integer', 'null'] },
    list: { type: 'array', items: { type: 'string' } },
    code: { type: 'string', pattern: '^[A-Z]{2}$' },
  },
  required: ['text'],
  additionalProperties: false,
};

/** Writes arguments as a model does. */
function writtenTagged(args: Readonly<Record<string, Json>>, { open, named, close }: Tags): string {
  const value = (json: Json) => (typeof json === 'string' ? json : JSON.stringify(json));
  return Object.entries(args)
    .map(([name, json]) => open + name + named + value(json) + close)
    .join('');
}

function accepts(text: string, tags: Tags): boolean {
  const value = taggedObject(schema, tags, 'tools[0]');
  let state: State | null = new Automaton([{ before: '', value, after: '</function>' }]).start;
  for (const byte of new TextEncoder().encode(`${text}</function>`)) state = state?.next(byte) ?? null;
  return state?.complete ?? false;
}

/** Arguments that obey the schema. */
const VALID: Readonly<Record<string, Json>>[] = [
  { text: '' },
  { text: 'if (a < b) {\n\treturn "</param>";\n}\n' },
  { text: 'Köln 😀 \\n "x"', size: 12 },
  { text: '</functio', kind: 'a', any: 'null and void' },
  { text: 'x', kind: 'ab', any: 7 },
  { text: 'x', kind: 1, any: null },
  { text: '\n', kind: null, list: ['</parameter>', 'b\n'], code: 'DE' },
];

describe.each([
  ['Qwen3-Coder', QWEN],
  ['Seed-OSS', SEED],
])('%s', (_, tags) => {
  it.each(VALID)('%j is read back, however it is split', (args) => {
    const text = writtenTagged(args, tags);
    expect(accepts(text, tags)).toBe(true);
    for (let at = 0; at <= text.length; at++) {
      const reader = new TaggedReader(taggedObject(schema, tags, 'tools[0]'));
      const json = reader.push(text.slice(0, at), false) + reader.push(text.slice(at), false) + reader.push('', true);
      expect(JSON.parse(json)).toEqual(args);
      expect(Object.keys(JSON.parse(json))).toEqual(Object.keys(args));
    }
  });

  it.each([
    {},
    { size: 1 },
    { text: 'x', size: 0 },
    { text: 'x', other: 1 },
    { text: 'x', code: 'de' },
    { text: 'x', kind: 'b' },
    { size: 1, text: 'x' },
    { text: `a${tags.close}b` },
  ])('%j is not allowed', (args) => {
    expect(accepts(writtenTagged(args, tags), tags)).toBe(false);
  });
});

it('returns a string as it arrives, and a call that is cut incomplete', () => {
  const reader = new TaggedReader(taggedObject(schema, QWEN, 'tools[0]'));
  expect(reader.push('<parameter=te', false)).toBe('');
  expect(reader.push('xt>\nOne "line"\n</par', false)).toBe('{"text":"One \\"line\\"');
  expect(reader.push('t\n', false)).toBe('\\n</part');
  expect(reader.push('</parameter>\n<parameter=size>\n1', false)).toBe('","size":');
});

it('refuses a schema that is not one object', () => {
  const either: JsonSchema = { anyOf: [schema, { type: 'object', properties: { b: { type: 'string' } } }] };
  expect(() => taggedObject(either, QWEN, 'tools[3]')).toThrow(
    expect.objectContaining({ code: 'unsupported_schema', param: 'tools[3]' }),
  );
});

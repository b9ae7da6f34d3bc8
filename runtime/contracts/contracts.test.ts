import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { at } from '../../lib/at.ts';
import { atOnce } from '../../lib/at-once.ts';
import { batchOfSystemOne } from '../../lib/questions/systemone.ts';
import { fixture } from '../../tests/fixture.ts';
import { loadTextModel } from '../text/text-model.ts';
import { planTasks } from '../worker/task-job.ts';
import { ASSAY } from './assay.ts';
import type { DecisionContract, Field, Row } from './contract.ts';
import { contractText } from './contract-text.ts';
import type { PublishedFiles } from './published-files.ts';
import { questionOf, stateOf } from './question.ts';
import { contractFor, contractInFolder } from './read-files.ts';

/** Cases that the author's own code has answered, with tiny random weights (tests/fixtures/decisions/README.md). */
interface Golden {
  tokenizer: string;
  trueFirst: boolean;
  cases: readonly {
    name: string;
    /** JSON text of the request, with Python's numbers. */
    body: string;
    rows: readonly { ids: number[]; read: number[]; options?: number[]; logits?: number[] }[];
    probabilities: Readonly<Record<string, number[]>>;
  }[];
}

const folder = (name: string) => fixture(`decisions/${name}`);
const FAMILIES = [
  'decider',
  'decider-chat',
  'startlux',
  'd3',
  'pplx-decider',
  'kev-dense',
  'strands',
  'decision2-dense',
];
const LIMIT = 16_384;
const LIMITS = { maxPromptLen: LIMIT, contextLength: LIMIT };

describe.each(FAMILIES)('%s', async (family) => {
  const golden: Golden = JSON.parse(readFileSync(`${folder(family)}/golden.json`, 'utf8'));
  const text = contractText(await loadTextModel(folder(`tokenizers/${golden.tokenizer}`)), LIMIT);
  const contract = (await contractInFolder(folder(family), `acme/${family}`)) as DecisionContract;
  const open = contract.open(text, folder(family));

  it.each(golden.cases)("has the author's rows: $name", async ({ body, rows, probabilities }) => {
    const batch = batchOfSystemOne(JSON.parse(body), body);
    const read: { ids: number[]; positions: number[] }[] = [];
    const plan = atOnce(planTasks({ contract, text, open, narrow: false }, batch, LIMITS));
    const { answers } = await plan.answers(async ({ prefix, branches }) => {
      const outputs = branches.map(({ suffix, read: reads }) => {
        const ids = [...prefix, ...suffix];
        read.push({ ids, positions: reads!.positions.map((position) => position + prefix.length) });
        const { logits = [] } = rows.find((row) => String(row.ids) === String(ids)) ?? {};
        // The logits of a row are given as the outputs of its labels; a head's outputs are not part of this test.
        return reads!.outputs ? [Float32Array.from(logits)] : reads!.positions.map(() => new Float32Array(64));
      });
      const none = { tokens: [], constraint: null, chosen: 0, reason: 'stop' as const };
      const times = { queueMs: 0, promptMs: 0, generationMs: 0, promptTokens: 0, cachedTokens: 0 };
      return { ...times, branches: outputs.map((found) => ({ ...none, rows: found })) };
    });
    const expected = rows.map(({ ids, read: last, options = [] }) => ({ ids, positions: [...options, ...last] }));
    expect(read).toEqual(expected);
    if (contract.open(text, folder(family)).combine) return;
    for (const [i, [id, wanted]] of Object.entries(probabilities).entries()) {
      const order = JSON.parse(body).questions[id].type === 'noul' && !golden.trueFirst ? wanted.toReversed() : wanted;
      const found = at(answers, i).optionLogprobs!.map(Math.exp);
      for (const [option, probability] of order.entries()) expect(found[option]).toBeCloseTo(probability, 5);
    }
  });
});

describe.each(FAMILIES)('%s', async (family) => {
  const { tokenizer: name }: Golden = JSON.parse(readFileSync(`${folder(family)}/golden.json`, 'utf8'));
  const model = await loadTextModel(folder(`tokenizers/${name}`));
  const contract = (await contractInFolder(folder(family), `acme/${family}`)) as DecisionContract;
  const words = (count: number, of: string) => Array.from({ length: count }, (_, i) => `${of}${i}`).join(' ');

  it('encodes at most 4,096 characters before other work has a turn', () => {
    let characters = 0;
    const encodeTemplate = (text: string, continues: boolean) => {
      characters += text.length;
      return model.tokenizer.encodeTemplate(text, continues);
    };
    const text = contractText({ ...model, tokenizer: { ...model.tokenizer, encodeTemplate } }, LIMIT);
    const described = Array.from({ length: 20 }, (_, i) => [`option ${i}`, words(80, 'd')]);
    const questions = {
      long: { type: 'noul', instructions: words(1500, 'q') },
      wide: { type: 'choice', instructions: 'Which?', criteria: Object.fromEntries(described) },
    };
    const body = { state: { text: words(1200, 's') }, questions };
    const batch = batchOfSystemOne(body as never, JSON.stringify(body));
    const open = contract.open(text, folder(family));
    const parts = planTasks({ contract, text, open, narrow: false }, batch, LIMITS);
    let most = 0;
    const ended = (): boolean => {
      try {
        return parts.next().done ?? false;
      } catch (error) {
        // The author's limit of some models is below this.
        expect(error).toMatchObject({ code: 'input_too_long' });
        return true;
      }
    };
    do {
      most = Math.max(most, characters);
      characters = 0;
    } while (!ended());
    expect(Math.max(most, characters)).toBeLessThanOrEqual(4096);
  });

  it('encodes a long text as if it were encoded at once', () => {
    const prose = `${words(900, 'Word')}.\n${words(900, 'Caf\u00e9 ')}<|im_end|>\n<|im_start|>user\n${words(900, '\u6848')}`;
    // Endless words that end with a control token, in each place of which they could be cut.
    const endless = [0, 3, 7].map(
      (more) => `${'\u6848\u4ef6\u7eaa\u5f55'.repeat(1022)}${'x'.repeat(more)}<|im_end|>a `,
    );
    for (const text of [prose, ...endless, endless.join('')])
      expect(contractText(model, 8 * LIMIT).encode(text)).toEqual(model.tokenizer.encodeTemplate(text, false));
  });
});

test('a text is not cut where a token of the vocabulary has a space behind a letter', async () => {
  const model = await loadTextModel(fixture('models/genai/gemma3'));
  const text = Array.from({ length: 500 }, (_, i) => `{"text":"It's "${i}""}`).join();
  expect(contractText(model, LIMIT * 8).encode(text)).toEqual(model.tokenizer.encodeTemplate(text, false));
});

test.each(['decider', 'kev-dense', 'decision2-dense', 'clef'])(
  '%s writes a row of more tokens than fit on the stack',
  async (family) => {
    const text = contractText(await loadTextModel(folder('tokenizers/wide')), 1_000_000);
    const contract = (await contractInFolder(folder(family), `acme/${family}`)) as DecisionContract;
    const long = 'word '.repeat(70_000);
    const options = ['a', 'b'].map((name) => ({ name, description: long }));
    const question = { task: 'q', id: 'q', kind: 'choice', instructions: long, options } as const;
    const rows = () => contract.open(text, folder(family)).about('x', [question]).ask(question).next([]).value;
    if (family === 'clef') expect(rows).toThrow(expect.objectContaining({ code: 'input_too_long' }));
    else expect((rows() as Row[])[0]!.ids.length).toBeGreaterThan(3 * 125_000);
  },
);

test.each([
  ['values', Array.from({ length: 80_000 }, (_, i) => i), /at least 80000 values/u],
  ['characters', 'a'.repeat(5_000_000), /5000000 characters/u],
])('a state with too many %s is refused before it is parsed', async (_, state, says) => {
  const text = contractText(await loadTextModel(folder('tokenizers/wide')), LIMIT);
  const contract = (await contractInFolder(folder('decider'), 'acme/decider')) as DecisionContract;
  const open = { labels: null, about: () => expect.unreachable() };
  const body = { state, questions: { q: { type: 'noul' } } };
  const batch = batchOfSystemOne(body as never, JSON.stringify(body));
  expect(() => planTasks({ contract, text, open, narrow: false }, batch, LIMITS).next()).toThrow(
    expect.objectContaining({ code: 'input_too_long', message: expect.stringMatching(says) }),
  );
});

test('a request has at most 131,072 tokens in all its rows, with the state once', async () => {
  const text = contractText(await loadTextModel(folder('tokenizers/wide')), LIMIT);
  const contract = (await contractInFolder(folder('decider'), 'acme/decider')) as DecisionContract;
  const loaded = { contract, text, open: contract.open(text, folder('decider')), narrow: false };
  const planned = (questions: number): number => {
    const instructions = 'fits '.repeat(2500);
    const sent = Array.from({ length: questions }, (_, i) => [`q${i}`, { type: 'noul', instructions }]);
    const body = { state: 'It fits. '.repeat(200), questions: Object.fromEntries(sent) };
    return atOnce(planTasks(loaded, batchOfSystemOne(body as never, JSON.stringify(body)), LIMITS)).promptTokens;
  };
  const both = planned(2);
  const own = both - planned(1);
  const most = Math.floor((131_072 - (both - 2 * own)) / own);
  expect(planned(most)).toBeGreaterThan(131_072 - own);
  expect(() => planned(most + 2)).toThrow(
    expect.objectContaining({ code: 'input_too_long', message: expect.stringMatching(/about \d+ tokens .* 131072/u) }),
  );
});

test('clef asks all questions in one row, whatever the order of their options', async () => {
  const { cases }: { cases: readonly ClefCase[] } = JSON.parse(readFileSync(`${folder('clef')}/golden.json`, 'utf8'));
  const text = contractText(await loadTextModel(folder('tokenizers/narrow')), LIMIT);
  const contract = (await contractInFolder(folder('clef'), 'acme/clef')) as DecisionContract;
  const open = contract.open(text, folder('clef'));
  for (const { body, ids, fields } of cases) {
    const batch = batchOfSystemOne(JSON.parse(body), body);
    const questions = batch.tasks.map((task) => questionOf(task, 'clef', contract.limits));
    const asking = open.about(stateOf(batch, true).value, questions);
    const [first] = questions;
    const asked = { ...first!, options: first!.options.toReversed() };
    const [row] = asking.ask(asked).next([]).value as Row[];
    expect(row!.ids).toEqual(ids);
    const spans = (row!.read as { joint: Field[] }).joint.map(({ question, options }) => ({ question, options }));
    expect(spans).toEqual(fields);
  }
});

interface ClefCase {
  body: string;
  ids: number[];
  fields: { question: number[]; options: number[][] }[];
}

const decider = { temperature: 1.2 };
const readout = {
  format_version: 1,
  codes: Array.from({ length: 255 }, (_, i) => `c${i}`),
  token_ids: Array.from({ length: 255 }, (_, i) => i),
  temperature: 1,
  attention_mode: 'causal',
  pooling: 'last',
  max_length: 4096,
};
const strands = { base_model: 'a/b', head_type: 'pointer' };
const kev = { base: 'a/b', head: {}, temperature: 2 };

/** Returns the files of a model whose contents are those in `json`; other files exist only. */
const published = (json: Record<string, unknown>, ...others: string[]): PublishedFiles => ({
  paths: new Set([...Object.keys(json), ...others]),
  json,
});

test.each<[string, PublishedFiles, RegExp]>([
  [
    'an unknown key',
    published({ 'decider_config.json': { ...decider, boost: 2 } }),
    /decider_config\.json has the key boost/,
  ],
  ['an unknown layout', published({ 'decider_config.json': { ...decider, layout: 'xml' } }), /"xml" for layout/],
  ['questions before the state', published({ 'decider_config.json': { schema_first: true } }), /true for schema_first/],
  [
    'a layout that contradicts itself',
    published({ 'decider_config.json': { layout: 'plain', chat_template: true } }),
    /contradict/,
  ],
  ['a temperature of 0', published({ 'decider_config.json': { temperature: 0 } }), /temperature/],
  [
    'an unknown format',
    published({ 'decision_config.json': { ...readout, format_version: 2 } }, 'readout.safetensors'),
    /2 for format_version/,
  ],
  [
    'another attention',
    published({ 'decision_config.json': { ...readout, attention_mode: 'set' } }, 'readout.safetensors'),
    /attention_mode/,
  ],
  [
    'another render',
    published({
      'decision_config.json': { letter_token_ids: Array(26).fill(1), temperature_by_type: {}, render: 'jev_render_v4' },
    }),
    /jev_render_v4/,
  ],
  [
    'the head of older models',
    published({ 'strands_decider_config.json': { ...strands, head_type: 'slot' } }),
    /"slot" for head_type/,
  ],
  [
    'a base model without its adapter',
    published({ 'strands_decider_config.json': strands }, 'head.safetensors', 'model.safetensors'),
    /no adapter_model\.safetensors/,
  ],
  ['isolated options', published({ 'head.pt': { ...kev, option_isolation: true } }, 'adapter_config.json'), /head\.pt/],
  ['another task', published({ 'schema_config.json': { task: 'v3' } }), /"v3" for task/],
  ['plain prompts', published({ 'lev_release.json': { prompt_style: 'plain', base_model: 'a/b' } }), /prompt_style/],
  [
    'an unknown prompt',
    published({ 'decision_config.json': { prompt_version: 'v9' } }, 'decision_head.safetensors'),
    /prompt_version/,
  ],
  ['a joint head of another form', published({ 'joint_head_config.json': { width: 8 } }), /joint_head_config\.json/],
  ['a model that reasons first', published({}, 'head.pt', 'export.json'), /Jeeves/],
  ['attention by sets', published({ 'config.json': { d1_attention: 'set' } }), /d1_attention/],
])('%s is refused by name', (_, files, message) => {
  expect(() => contractFor(files, 'a/b')).toThrow(message);
});

test('a chat model has the contract of Assay, and one with the name of a family that of the family', () => {
  const chat = published({ 'config.json': { model_type: 'qwen3' } }, 'model.safetensors', 'tokenizer.json');
  expect(contractFor(chat, 'Qwen/Qwen3-0.6B')).toBe(ASSAY);
  expect(contractFor(chat, 'togethercomputer/Tev1-4B-experimental').info.name).toBe('tev1');
});

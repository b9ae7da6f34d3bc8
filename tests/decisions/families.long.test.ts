import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAsWritten, stringifyAsWritten } from '../../lib/json/written-numbers.ts';
import { fixture, readFixture } from '../fixture.ts';
import { HubServer } from '../hub/hub-server.ts';
import { type HubRepository, hubRepository } from '../hub/repository.ts';
import { type Json, newBase, type ServerProcess, startServer } from '../model-server/server.ts';
import { formulaSafetensors, type WeightShapes } from '../oracle/formula-weights.ts';

/*
 * Decision models of several authors, with tiny random weights, from the hub to the answers of a real server: the
 * probabilities are those that the author's own code computes (tests/fixtures/decisions/README.md).
 */

const KEY = 'demo';
/** Largest difference of a probability in 32-bit floats. The authors' goldens are computed in 64 bits. */
const TOLERANCE = 1e-4;

/**
 * Names the adapters' base models, which are in repositories of their own: one at the commit that the adapter names,
 * and one whose hub has lost that commit.
 */
const BASES: Readonly<Record<string, { id: string; commit?: string }>> = {
  'kev-dense': { id: 'Qwen/Qwen3-0.6B-Base', commit: 'dc7cdfe2ee4154fa7e30f5b51ca41bfa40174e68' },
  strands: { id: 'Qwen/Qwen3.5-2B-Base' },
};
/** Version and source of the temperature of each family, as the model list names them. */
const CONTRACTS: Readonly<Record<string, object>> = {
  decider: { name: 'decider', temperature: 'decider_config.json: temperature_by_type' },
  'decider-chat': { name: 'decider-chat', temperature: 'decider_config.json: temperature_by_options' },
  startlux: { name: 'startlux', temperature: 'decision_config.json: temperature_by_type' },
  d3: { name: 'd3', temperature: 'decision_config.json: temperature' },
  'pplx-decider': { name: 'pplx-decider', temperature: 'decision_config.json: temperature' },
  clef: { name: 'clef' },
  'kev-dense': { name: 'kev', temperature: 'head.pt: temperature' },
  strands: { name: 'strands', temperature: 'strands_decider_config.json: temperature_by_kind' },
  'decision2-dense': { name: 'decision', version: '2.0' },
  lev: { name: 'lev', version: 'lev-tiny', temperature: 'calibration.json: temperatures' },
  nimble: { name: 'nimble', temperature: 'schema_config.json: temperature' },
  jevk5: { name: 'jevk5', version: 'tiny', temperature: 'jevk5_config.json: temperature' },
  tev1: { name: 'tev1', version: '1' },
  winnow: { name: 'winnow', version: 'winnow-v1' },
  decision1: { name: 'decision', version: '1.0', temperature: 'temperature.json: temperature' },
};
const FAMILIES = Object.keys(CONTRACTS);

interface Golden {
  tokenizer: string;
  trueFirst: boolean;
  cases: readonly { name: string; body: string; probabilities: Readonly<Record<string, number[]>> }[];
}
/** Describes a model whose weights a formula gives (`make.py`). */
interface Formula extends Golden {
  family: string;
  repository: string;
  files: Readonly<Record<string, object>>;
  config: object;
  weights: WeightShapes;
  /** Weights of an adapter of rank 4, which makes `weights` those of its base model, and of a head. */
  lora?: { targets: string[]; weights: WeightShapes };
  head?: WeightShapes;
}
const read = (path: string) => JSON.parse(readFixture(`decisions/${path}`));
const FORMULAS = new Map((read('formula.json') as Formula[]).map((one) => [one.family, one]));
const goldenOf = (family: string): Golden => FORMULAS.get(family) ?? read(`${family}/golden.json`);
const modelOf = (family: string): string => FORMULAS.get(family)?.repository ?? `acme/${family}`;

/** Returns the files below a folder by their paths. */
function filesIn(folder: string, prefix = ''): Record<string, Buffer> {
  return Object.fromEntries(
    readdirSync(folder, { withFileTypes: true }).flatMap((entry): [string, Buffer][] =>
      entry.isDirectory()
        ? Object.entries(filesIn(join(folder, entry.name), `${prefix}${entry.name}/`))
        : [[`${prefix}${entry.name}`, readFileSync(join(folder, entry.name))]],
    ),
  );
}

/** Returns the repositories of a family: the model's and, for an adapter, that of its base model. */
function repositoriesOf(family: string): HubRepository[] {
  const tokenizer = filesIn(fixture(`decisions/tokenizers/${goldenOf(family).tokenizer}`));
  const formula = FORMULAS.get(family);
  if (formula) return formulaRepositories(formula, tokenizer);
  const files = Object.entries({ ...tokenizer, ...filesIn(fixture(`decisions/${family}`)) });
  const own = files.filter(([path]) => !path.startsWith('base/') && path !== 'golden.json');
  const base = files.filter(([path]) => path.startsWith('base/'));
  const below = base.map(([path, content]) => [path.slice('base/'.length), content] as const);
  const model = hubRepository(`acme/${family}`, Object.fromEntries(own));
  const named = BASES[family];
  if (!named) return [model];
  const { id, ...commit } = named;
  return [model, { ...hubRepository(id, Object.fromEntries(below)), ...commit }];
}

/** Returns the repository of a model whose weights a formula gives, and that of its base model if it is an adapter. */
function formulaRepositories(
  { repository, files, config, weights, lora, head }: Formula,
  tokenizer: Record<string, Buffer>,
): HubRepository[] {
  const own = Object.fromEntries(Object.entries(files).map(([name, value]) => [name, JSON.stringify(value)]));
  const model = { 'config.json': JSON.stringify(config), 'model.safetensors': formulaSafetensors(weights) };
  const top = head ? { 'decision_head.safetensors': formulaSafetensors(head) } : {};
  if (!lora) return [hubRepository(repository, { ...tokenizer, ...own, ...model, ...top })];
  const { base_model } = files['lev_release.json'] as { base_model: string };
  const adapter = { peft_type: 'LORA', r: 4, lora_alpha: 8, target_modules: lora.targets };
  const added = {
    'adapter_config.json': JSON.stringify({ ...adapter, base_model_name_or_path: base_model }),
    'adapter_model.safetensors': formulaSafetensors(lora.weights),
  };
  return [hubRepository(repository, { ...tokenizer, ...own, ...added }), hubRepository(base_model, model)];
}

let hub: HubServer;
let server: ServerProcess;
let openai: OpenAI;
const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
const call = (path: string, body: Json) => server.call('POST', path, body, headers);

beforeAll(async () => {
  hub = await HubServer.start(...FAMILIES.flatMap(repositoriesOf));
  server = await startServer(hub, await newBase(), ['--no-load', '--precision', 'float', '--api-key', KEY]);
  openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: KEY, maxRetries: 0 });
});
afterAll(async () => {
  await server?.stop();
  await hub?.stop();
});

/** Answers a request in the System One format, whose text is sent as it is. */
async function systemOne(model: string, body: string): Promise<Record<string, Json>> {
  const text = body.replace('"model": "m"', `"model": ${JSON.stringify(model)}`);
  const response = await fetch(`${server.url}/v1/systemone`, { method: 'POST', headers, body: text });
  const json: Json = await response.json();
  if (response.status !== 200) throw new Error(JSON.stringify(json));
  return json.answers;
}

/** Returns the probabilities of an answer in the order of the golden, which lists false before true. */
function probabilitiesOf(answer: Json, question: Json, trueFirst: boolean): number[] {
  if (answer.type === 'noul') return trueFirst ? [answer.noul, 1 - answer.noul] : [1 - answer.noul, answer.noul];
  const names = question.type === 'choice' ? Object.keys(question.criteria) : Object.keys(answer.probabilities);
  return names.map((name) => answer.probabilities[name]);
}

/**
 * Families whose answers depend on the other questions of a request, by the names of the cases: the prompt has all
 * questions, or the author's code cuts a long state to what the longest question leaves.
 */
const DEPENDENT: Readonly<Record<string, (name: string) => boolean>> = {
  clef: () => true,
  nimble: () => true,
  strands: (name) => name === 'wide',
};

/** Returns a request with one of its questions, and the numbers as they were written. */
function alone(body: string, id: string): string {
  const request = parseAsWritten(body) as { questions: Json };
  const text = stringifyAsWritten({ ...request, questions: { [id]: request.questions[id] } });
  return text.replace('"model":"m"', '"model": "m"');
}

describe.each(FAMILIES)('%s', (family) => {
  const model = modelOf(family);
  const { cases, trueFirst } = goldenOf(family);

  beforeAll(async () => {
    expect(await call('/download', { model })).toMatchObject({ status: 200 });
    expect(await call('/load', { model })).toMatchObject({ status: 200 });
  });

  it.each(cases)('answers $name with the probabilities of its author, together and alone', async (golden) => {
    const answers = await systemOne(model, golden.body);
    const { questions } = JSON.parse(golden.body);
    for (const [id, wanted] of Object.entries(golden.probabilities)) {
      const found = probabilitiesOf(answers[id], questions[id], trueFirst);
      for (const [option, probability] of wanted.entries()) {
        expect(Math.abs((found[option] ?? Number.NaN) - probability)).toBeLessThan(TOLERANCE);
      }
      if (DEPENDENT[family]?.(golden.name)) continue;
      expect((await systemOne(model, alone(golden.body, id)))[id]).toEqual(answers[id]);
    }
  });

  it('answers all types of questions of the official client', async () => {
    const { answers } = await openai.decisions.create({
      model,
      input: 'The parcel came two weeks late and the mug was broken.',
      questions: [
        { type: 'predicate', name: 'late', instructions: 'Is it late?' },
        {
          type: 'choice',
          name: 'team',
          instructions: 'Which team?',
          choices: [{ value: 'billing' }, { value: 'shipping' }],
        },
        {
          type: 'score',
          name: 'anger',
          instructions: 'How angry?',
          levels: [{ label: 'calm' }, { label: 'cross' }, { label: 'angry' }],
        },
      ],
    });
    const sums = answers.map((answer) =>
      'probabilities' in answer ? answer.probabilities.reduce((sum, { probability }) => sum + probability, 0) : 1,
    );
    expect(answers.map(({ type }) => type)).toEqual(['predicate', 'choice', 'score']);
    for (const sum of sums) expect(sum).toBeCloseTo(1, 6);
  });

  it('is listed with its contract, and refuses what it cannot do', async () => {
    const { body } = await server.call('GET', '/v1/models', undefined, headers);
    expect(body.data.find(({ id }: Json) => id === model)).toMatchObject({
      contract: CONTRACTS[family],
      capabilities: { decide: 'options', extract: false, chat: false },
    });
    const chat = { model, messages: [{ role: 'user', content: 'Hello' }] };
    expect(await call('/v1/chat/completions', chat)).toMatchObject({
      status: 400,
      body: { error: { code: 'unsupported_parameter' } },
    });
    const extract = {
      model,
      context: 'Ana',
      instruction: 'Who?',
      schema: { type: 'object', properties: { name: { type: 'string' } } },
    };
    expect(await call('/extract', extract)).toMatchObject({
      status: 422,
      body: { error: { code: 'unsupported_parameter' } },
    });
  });
});

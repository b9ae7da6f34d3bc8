import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { KeysStore } from '../../adapters/node/keys-file.ts';
import { hashSecret, type KeyStore, listedKeys } from '../../lib/keys.ts';
import { BIN, newFolder } from '../cli/assay.ts';
import { serveScript } from '../clients/scripted.ts';
import type { Script } from '../scripted-backend/script.ts';

/* The SDK's own client on `assay mcp`, which asks a server with a scripted backend. */

type Server = Awaited<ReturnType<typeof serveScript>>;
let server: Server | undefined;
let client: Client | undefined;
let child: ChildProcess | undefined;
let home: string;
beforeAll(async () => {
  home = await newFolder();
});
afterEach(async () => {
  await client?.close();
  if (child && child.exitCode === null) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await server?.close(0);
  child = undefined;
});

const KEY = 'test-key';
const keys = async () => listedKeys([{ name: 'agent', sha256: await hashSecret(KEY), models: ['*'], scopes: [] }]);
const env = () => ({ PATH: process.env.PATH ?? '', HOME: home, ASSAY_API_KEY: KEY, ASSAY_URL: server?.url ?? '' });

async function overStdio(script: Script): Promise<Client> {
  server = await serveScript(script, await keys());
  client = new Client({ name: 'test', version: '1.0.0' });
  const args = [BIN, 'mcp', '--home', home];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env: env(), stderr: 'inherit' }));
  return client;
}

/** Starts `assay mcp --http` and returns its address. */
async function startHttp(script: Script, accepted?: KeyStore): Promise<string> {
  server = await serveScript(script, accepted ?? (await keys()));
  const args = [BIN, 'mcp', '--http', '--port', '0', '--home', home];
  child = spawn(process.execPath, args, { env: env(), stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const chunk of child.stdout!) {
    const url = /listens on (http:\/\/\S+\/mcp)/.exec(String(chunk))?.[1];
    if (url) return url;
  }
  throw new Error('assay mcp ended');
}

async function overHttp(script: Script): Promise<Client> {
  const url = new URL(await startHttp(script));
  client = new Client({ name: 'test', version: '1.0.0' });
  const requestInit = { headers: { authorization: `Bearer ${KEY}` } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  return client;
}

const decision: Script = { tasks: { answers: ['{"value":"yes"}'], probabilities: [[0.9, 0.1]] } };
const urgent = { text: 'Help!', question: 'Is this urgent?', options: ['yes', 'no'] };

describe.each([
  ['stdio', overStdio],
  ['streamable HTTP', overHttp],
])('over %s', (_, open) => {
  it('lists the tools, with their schemas', async () => {
    const { tools } = await (await open({})).listTools();
    expect(tools.map(({ name }) => name)).toEqual(['decide', 'select', 'rank', 'extract']);
    expect(tools[0]).toMatchObject({
      annotations: { readOnlyHint: true },
      inputSchema: { type: 'object', required: ['text', 'question'] },
      outputSchema: { type: 'object', required: ['answer'] },
    });
  });

  it('decides among options, with probabilities', async () => {
    const result = await (await open(decision)).callTool({ name: 'decide', arguments: urgent });
    expect(result.structuredContent).toMatchObject({
      answer: 'yes',
      probabilities: { yes: expect.closeTo(0.9), no: expect.closeTo(0.1) },
    });
    expect(server?.recorded.find(({ call }) => call === 'runTasks')).toMatchObject({
      batch: { model: 'assay/starter', input: { context: 'Help!' }, tasks: [{ options: ['yes', 'no'] }] },
    });
  });

  it('extracts fields', async () => {
    const script = { tasks: { answers: ['{"total":"49.90"}'] } };
    const args = { text: 'It cost 49.90.', keys: ['total'] };
    const result = await (await open(script)).callTool({ name: 'extract', arguments: args });
    expect(result.structuredContent).toEqual({ data: { total: '49.90' } });
  });
});

describe('over stdio', () => {
  it('decides in its own words without options', async () => {
    const mcp = await overStdio({ tasks: { answers: ['{"value":"A refund"}'] } });
    const { options: _, ...open } = urgent;
    const result = await mcp.callTool({ name: 'decide', arguments: open });
    expect(result.structuredContent).toEqual({ answer: 'A refund' });
  });

  it.each([
    ['decide', { text: 'Help!', question: 'What is it?' }, { tasks: { answers: ['{"value":"A refund"}'] } }],
    ['extract', { text: 'It cost 49.90.', keys: ['total'] }, { tasks: { answers: ['{"total":"49.90"}'] } }],
  ])('%s reads a text in windows if asked to', async (name, args, script) => {
    const mcp = await overStdio(script);
    await mcp.callTool({ name, arguments: args });
    const result = await mcp.callTool({ name, arguments: { ...args, windows: true } });
    expect(result.isError).toBeUndefined();
    // Answers of windows are merged by their probabilities, so these are asked for.
    const asked = server?.recorded.filter(({ call }) => call === 'runTasks') ?? [];
    expect(asked).toHaveLength(2);
    expect(asked[0]).not.toMatchObject({ batch: { probabilities: {} } });
    expect(asked[1]).toMatchObject({ batch: { probabilities: {} } });
  });

  it('passes on what a decision may have besides: unsure, evidence, max_error', async () => {
    const mcp = await overStdio({ tasks: { probabilities: [[0.75, 0, 0.25]], answers: ['{"words":"Help"}'] } });
    const asked = { ...urgent, unsure: true, evidence: true, max_error: 0.1 };
    const result = await mcp.callTool({ name: 'decide', arguments: asked });
    expect(result.structuredContent).toMatchObject({
      answer: 'yes',
      p_unsure: expect.closeTo(0.25),
      evidence: [{ source: '/state', start: 0, end: 4, text: 'Help' }],
    });
    expect(server?.recorded.find(({ call }) => call === 'runTasks')).toMatchObject({
      batch: { probabilities: { maxError: 0.1 }, tasks: [{ unsure: true }] },
    });
  });

  it('selects labels and ranks documents', async () => {
    const probabilities = [
      [0.25, 0.75],
      [0.75, 0.25],
    ];
    const mcp = await overStdio({ tasks: { probabilities } });
    const { text, question } = urgent;
    const labels = { text, question, options: ['a', 'b'], threshold: 0.6 };
    expect((await mcp.callTool({ name: 'select', arguments: labels })).structuredContent).toEqual({
      selected: ['b'],
      probabilities: { a: expect.closeTo(0.25), b: expect.closeTo(0.75) },
      set_confidence: expect.closeTo(0.5625),
    });
    const ranked = await mcp.callTool({ name: 'rank', arguments: { query: 'Q', documents: ['one', 'two'], top_n: 1 } });
    expect(ranked.structuredContent).toEqual({ results: [{ index: 1, relevance: expect.closeTo(0.75) }] });
    expect(await mcp.callTool({ name: 'rank', arguments: { query: 'Q', documents: [] } })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('documents') }],
    });
  });

  it('an error says what to do, as the result of the tool', async () => {
    const fail = { code: 'overloaded', message: 'Try again later.', retryAfterSeconds: 1 } as const;
    const mcp = await overStdio({ tasks: { fail } });
    const result = await mcp.callTool({ name: 'decide', arguments: urgent });
    expect(result).toMatchObject({ isError: true, content: [{ text: 'overloaded: Try again later.' }] });
  });

  it.each<[tool: string, sent: Record<string, unknown>, message: string]>([
    ['decide', { text: 'x' }, 'missing_field: question is required.'],
    ['decide', {}, 'missing_field: text is required.'],
    ['decide', { ...urgent, text: 5 }, 'invalid_type: text must be a string.'],
    ['decide', { ...urgent, question: '' }, 'invalid_value: question must not be empty.'],
    ['decide', { ...urgent, options: 'yes,no' }, 'invalid_type: options must be a list.'],
    ['decide', { ...urgent, options: ['a', 'a'] }, 'invalid_value: options[1] repeats an earlier one.'],
    [
      'decide',
      { text: 'x', question: 'q', option: ['a'] },
      'unknown_field: option is not a field of this request. Did you mean “options”? If not, remove it.',
    ],
    ['extract', { text: 'x', keys: [] }, 'invalid_value: keys must not be empty.'],
    ['extract', { text: 'x', schema: 'total' }, 'invalid_type: schema must be an object.'],
  ])('refuses %s %j: %s', async (name, sent, message) => {
    const result = await (await overStdio({})).callTool({ name, arguments: sent });
    expect(result).toMatchObject({ isError: true, content: [{ text: message }] });
    expect(server?.recorded.filter(({ call }) => call === 'runTasks')).toEqual([]);
  });
});

describe('over streamable HTTP', () => {
  it("acts with the caller's key: its models, quota and priority", async () => {
    const filed = new KeysStore(home);
    const other = await filed.create({ name: 'other', models: ['none/*'], scopes: [] });
    const batch = await filed.create({
      ...{ name: 'batch', models: ['*'], scopes: [] },
      ...{ requestsPerMinute: 1, priority: 'batch' },
    });
    const accepted: KeyStore = { find: async (sha256) => listedKeys(await filed.list()).find(sha256) };
    const url = new URL(await startHttp(decision, accepted));
    const open = async (key: string) => {
      const requestInit = { headers: { authorization: `Bearer ${key}` } };
      client = new Client({ name: 'test', version: '1.0.0' });
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
      return client;
    };
    const mcp = await open(other);
    const refused = await mcp.callTool({ name: 'decide', arguments: urgent });
    expect(refused).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^model_not_allowed: The key other /) }],
    });
    expect(server?.recorded.filter(({ call }) => call === 'runTasks')).toEqual([]);
    await mcp.close();
    await (await open(batch)).callTool({ name: 'decide', arguments: urgent });
    expect(server?.recorded.find(({ call }) => call === 'runTasks')).toMatchObject({ priority: 'batch' });
  });

  it('tells a key that its requests or tokens are used up, and nobody else', async () => {
    const filed = new KeysStore(home);
    const all = { models: ['*'], scopes: [] };
    const once = await filed.create({ ...all, name: 'once', requestsPerMinute: 1 });
    const few = await filed.create({ ...all, name: 'few', tokensPerMinute: 100 });
    const free = await filed.create({ ...all, name: 'free' });
    const accepted: KeyStore = { find: async (sha256) => listedKeys(await filed.list()).find(sha256) };
    const url = new URL(await startHttp(decision, accepted));
    const toolsOf = async (key: string) => {
      const requestInit = { headers: { authorization: `Bearer ${key}` } };
      const mcp = new Client({ name: 'test', version: '1.0.0' });
      await mcp.connect(new StreamableHTTPClientTransport(url, { requestInit }));
      onTestFinished(() => mcp.close());
      return { list: () => mcp.listTools(), decide: () => mcp.callTool({ name: 'decide', arguments: urgent }) };
    };
    for (const [key, used] of [
      [once, 'requests'],
      [few, 'tokens'],
    ] as const) {
      const tools = await toolsOf(key);
      let result = await tools.decide();
      expect(result.isError).toBeFalsy();
      for (let more = 0; more < 9 && !result.isError; more++) result = await tools.decide();
      const message = new RegExp(`^rate_limited: This key has used up its ${used} per minute. Try again in \\d+ s.$`);
      expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(message) }] });
      // Lists take no quota, as those of models do.
      expect((await tools.list()).tools).toHaveLength(4);
    }
    expect((await (await toolsOf(free)).decide()).isError).toBeFalsy();
  });

  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

  it.each([
    ['without a key', {}, 401],
    ['with an unknown key', { authorization: 'Bearer wrong' }, 401],
    ['from another page', { authorization: `Bearer ${KEY}`, origin: 'https://evil.example' }, 403],
  ])('%s: %o is %i', async (_, sent, status) => {
    const url = await startHttp({});
    expect((await fetch(url, { method: 'POST', headers: { ...headers, ...sent }, body: ping })).status).toBe(status);
  });
});

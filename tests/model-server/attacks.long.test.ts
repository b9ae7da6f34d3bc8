import * as net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { HubServer } from '../hub/hub-server.ts';
import { DIRECTORY, endless, endlessPages, lieAboutFiles, trickle } from '../hub/lies.ts';
import { type HubRepository, hubRepository } from '../hub/repository.ts';
import { fixtureModel } from '../registry/machine.ts';
import { type Json, newBase, residentBytes, type ServerProcess, startServer } from './server.ts';

/*
 * Attacks on a real server process, from a hub, from a model's author and from a caller. Each runs to its end, and some
 * once more with SIGTERM in the middle.
 */

const MODEL = 'acme/hostile';
const KEY = 'demo';
const AUTHORIZED = { authorization: `Bearer ${KEY}` };
const MIB = 1024 * 1024;
/** The longest time that an attack may take, in milliseconds. */
const ATTACK_MS = 60_000;
/** The longest time that the server may take to stop: a request that is checked has 2 s to drain here. */
const STOP_MS = 15_000;
/** The most that the server process may grow by, in bytes. The engine process has a limit of its own. */
const GROWTH_BYTES = 256 * MIB;

interface Target {
  hub: HubServer;
  server: ServerProcess;
}

const toStop: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of toStop.splice(0).reverse()) await one.stop();
});

async function startTarget(model: HubRepository): Promise<Target> {
  const hub = await HubServer.start(model);
  toStop.push(hub);
  const server = await startServer(hub, await newBase(), ['--no-load', '--api-key', KEY, '--drain-seconds', '2']);
  toStop.push(server);
  return { hub, server };
}

/** Returns the honest model with some of its files replaced. */
async function hostileModel(files: Record<string, (json: Json) => string | Buffer>): Promise<HubRepository> {
  const honest = await fixtureModel('optimum/qwen3', MODEL);
  const contents = honest.files.map(({ path, content }) => {
    const change = files[path];
    return [path, change ? change(path.endsWith('.json') ? JSON.parse(String(content)) : {}) : content] as const;
  });
  return hubRepository(MODEL, Object.fromEntries(contents));
}

const call = ({ server }: Target, path: string, body: Json) => server.call('POST', path, body, AUTHORIZED);
const download = (target: Target) => call(target, '/download', { model: MODEL });

/** Downloads and loads the model; returns the first response that is no success, or the last one. */
async function downloadAndLoad(target: Target): Promise<{ status: number; body: Json }> {
  const downloaded = await download(target);
  return downloaded.status === 200 ? call(target, '/load', { model: MODEL }) : downloaded;
}

const decide = (target: Target, context: string) =>
  call(target, '/decide', { model: MODEL, context, question: 'Is it?', options: ['yes', 'no'] });

/** A schema of 162 definitions, of which each names the next. */
function chainedSchema(): Json {
  const links = Array.from({ length: 162 }, (_, i) => [
    `d${i}`,
    i === 161
      ? { type: 'string' }
      : { type: 'object', properties: { x: { $ref: `#/$defs/d${i + 1}` } }, required: ['x'] },
  ]);
  return { $defs: Object.fromEntries(links), $ref: '#/$defs/d0' };
}

/** Opens connections that send one byte of a body and then nothing. */
async function sendSlowly({ server }: Target, count: number): Promise<{ status: number; body: Json }> {
  const { port } = new URL(server.url);
  const sockets = Array.from({ length: count }, () => {
    const socket = net.connect(Number(port), '127.0.0.1').on('error', () => undefined);
    socket.write(
      `POST /decide HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
    );
    return socket;
  });
  await sleep(1_000);
  const answer = await server.call('GET', '/health');
  for (const socket of sockets) socket.destroy();
  return answer;
}

/** Sends large requests, and leaves before they are answered. */
async function vanish({ server }: Target, count: number): Promise<{ status: number; body: Json }> {
  const body = JSON.stringify({ model: MODEL, context: 'a '.repeat(100_000), question: 'Is it?' });
  const headers = { 'content-type': 'application/json', ...AUTHORIZED };
  const calls = Array.from({ length: count }, () =>
    fetch(`${server.url}/decide`, { method: 'POST', headers, body, signal: AbortSignal.timeout(200) }).catch(
      () => null,
    ),
  );
  await Promise.all(calls);
  return server.call('GET', '/health');
}

interface Attack {
  name: string;
  model?: () => Promise<HubRepository>;
  /** Prepares the target; its memory and time do not count. */
  prepare?: (target: Target) => unknown;
  run(target: Target): Promise<{ status: number; body: Json }>;
  status: number;
  says?: RegExp;
}

/** Matches attacks that hold the server from each side: an endless hub, a process that never answers, and callers. */
const HELD = /trickle|never ends|doubles an array|slow senders/;

const lie = (name: string, answer: (hub: HubServer) => Parameters<typeof lieAboutFiles>[1], says: RegExp): Attack => ({
  name: `a hub whose list of files is ${name}`,
  prepare: ({ hub }) => lieAboutFiles(hub, answer(hub)),
  run: download,
  status: 502,
  says,
});

const ATTACKS: Attack[] = [
  lie('a compressed bomb', () => endless(' '.repeat(MIB), { gzip: true }), /longer than 16 MiB/),
  lie('entries without end', () => endless(`${JSON.stringify(DIRECTORY)},`, { begin: '[' }), /longer than 16 MiB/),
  lie(
    '5 MB of brackets',
    () => (_, response) => void response.end('['.repeat(5_000_000)),
    /does not answer like a hub/,
  ),
  lie('pages without end', (hub) => endlessPages(hub, [DIRECTORY]), /pages/),
  lie('a trickle', () => trickle, /took longer than/),
  {
    name: 'a tokenizer whose expression never ends',
    model: () =>
      hostileModel({
        'tokenizer.json': (json) => {
          json.pre_tokenizer = { type: 'Split', pattern: { Regex: '(a+)+$' }, behavior: 'Isolated', invert: false };
          return JSON.stringify(json);
        },
      }),
    prepare: downloadAndLoad,
    run: (target) => decide(target, `${'a'.repeat(60)}!`),
    status: 500,
    says: /tokenizer|not get on/,
  },
  {
    name: 'a vocabulary of 300 million',
    model: () => hostileModel({ 'config.json': (json) => JSON.stringify({ ...json, vocab_size: 300_000_000 }) }),
    run: downloadAndLoad,
    // The graph's logits say how large the vocabulary is, so the model is usable.
    status: 200,
  },
  {
    name: 'a tokenizer of 120 MB',
    model: () => hostileModel({ 'tokenizer.json': () => `{"a":"${'x'.repeat(120 * MIB)}"}` }),
    run: downloadAndLoad,
    status: 500,
    says: /tokenizer\.json/,
  },
  {
    name: 'a configuration nested a million deep',
    model: () => hostileModel({ 'config.json': () => '['.repeat(1_000_000) }),
    run: downloadAndLoad,
    status: 500,
    says: /config\.json nests too deep/,
  },
  {
    name: 'a chat template that doubles an array',
    model: () =>
      hostileModel({
        'tokenizer_config.json': (json) =>
          JSON.stringify({
            ...json,
            chat_template:
              '{% set n = namespace(a=[1]) %}{% for i in range(40) %}{% set n.a = n.a + n.a %}{% endfor %}',
          }),
      }),
    run: downloadAndLoad,
    status: 500,
    says: /chat template/,
  },
  {
    name: 'a schema of 162 chained references',
    model: () => fixtureModel('optimum/qwen3', MODEL),
    prepare: downloadAndLoad,
    run: (target) =>
      call(target, '/extract', { model: MODEL, context: 'x', instruction: 'Extract x.', schema: chainedSchema() }),
    status: 422,
  },
  {
    name: '500 slow senders',
    model: () => fixtureModel('optimum/qwen3', MODEL),
    prepare: downloadAndLoad,
    run: (target) => sendSlowly(target, 500),
    status: 200,
  },
  {
    name: '300 vanishing callers',
    model: () => fixtureModel('optimum/qwen3', MODEL),
    prepare: downloadAndLoad,
    run: (target) => vanish(target, 300),
    status: 200,
  },
];

describe.runIf(process.platform === 'linux').each(ATTACKS)('$name', { timeout: 120_000 }, (attack) => {
  const prepared = async (): Promise<Target> => {
    const target = await startTarget(await (attack.model ?? (() => fixtureModel('optimum/qwen3', MODEL)))());
    await attack.prepare?.(target);
    return target;
  };

  it('ends in time, with its reason and without taking much memory', async () => {
    const target = await prepared();
    const own = () => residentBytes(target.server.pid, { children: false });
    const before = await own();
    let most = before;
    const watch = setInterval(async () => {
      most = Math.max(most, await own());
    }, 20);
    const started = performance.now();
    const { status, body } = await attack.run(target).finally(() => clearInterval(watch));
    expect(performance.now() - started).toBeLessThan(ATTACK_MS);
    expect({ status, body }).toMatchObject({ status: attack.status });
    if (attack.says) expect(JSON.stringify(body)).toMatch(attack.says);
    expect(most - before).toBeLessThan(GROWTH_BYTES);
    expect((await target.server.call('GET', '/health')).status).toBe(200);
  });

  it.runIf(HELD.test(attack.name))('does not keep the server from stopping', async () => {
    const target = await prepared();
    const attacked = attack.run(target).catch(() => null);
    await sleep(500);
    const started = performance.now();
    await target.server.stop();
    expect(performance.now() - started).toBeLessThan(STOP_MS);
    await attacked;
  });
});

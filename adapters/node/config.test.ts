import { homedir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { type ServerFlags, serveFlags, serverConfig } from './config.ts';
import { UsageError } from './usage-error.ts';

const home = homedir();

test('the defaults', () => {
  expect(serverConfig({}, {})).toEqual({
    host: '127.0.0.1',
    port: 8080,
    home: `${home}/.assay`,
    model: ['assay/starter'],
    evict: false,
    loadOnDemand: false,
    device: 'auto',
    precision: 'auto',
    isolation: 'auto',
    longInput: 'refuse',
    chatMaxTokens: 1024,
    orders: 1,
    abstainBelow: 0,
    escalateBelow: 0.8,
    metricsQuestions: false,
    batches: false,
    cacheSize: 4e9,
    drainSeconds: 10,
    metricsNames: 'assay',
    load: true,
    alias: [],
    allowOrigin: [],
    allowMediaHost: [],
  });
});

test.each<[ServerFlags, Record<string, string>, string]>([
  [{}, {}, '--model assay/starter'],
  [{ model: ['a/b', 'c/d'] }, { ASSAY_MODEL: 'e/f' }, '--model a/b c/d'],
  [{}, { ASSAY_MODEL: 'e/f,g/h', ASSAY_BATCHES: '1', ASSAY_EVICT: '0' }, '--model e/f g/h --batches'],
  [{ load: false, alias: ['x'] }, { ASSAY_ORDERS: '2' }, '--model assay/starter --orders 2 --alias x --no-load'],
  [{ memory: '8 GB', drainSeconds: '10' }, { ASSAY_API_KEY: 'secret' }, '--model assay/starter --memory 8 GB'],
  [{ port: '9', home: '/h' }, { ASSAY_DTYPE: '' }, '--model assay/starter'],
])('the flags of a server with %j and %j', (flags, env, text) => {
  expect(serveFlags(flags, env, ['host', 'port', 'home', 'apiKey']).join(' ')).toBe(text);
});

test('the flags of a service configure the same server', () => {
  const given: ServerFlags = { host: '::1', port: '81', evict: true, precision: 'int8', shutdownDelay: '3' };
  const words = serveFlags(given, {}, ['apiKey']);
  expect(words).toEqual(
    ['--host', '::1', '--port', '81', '--model', 'assay/starter', '--evict', '--precision', 'int8'].concat([
      '--shutdown-delay',
      '3',
    ]),
  );
});

describe('flags come before the environment, and the environment before the defaults', () => {
  const env = {
    PORT: '1',
    ASSAY_HOME: '/e',
    ASSAY_API_KEY: 'e',
    ASSAY_MODEL: 'e/e',
    ASSAY_CHAT_MAX_TOKENS: '9',
    ASSAY_ORDERS: '2',
    ASSAY_ABSTAIN_BELOW: '0.5',
    ASSAY_CONFIDENCE: 'margin',
    ASSAY_ALIAS: 'one, two three',
    HOST: 'ignored',
  };
  test('environment', () => {
    const said = { port: 1, home: '/e', apiKey: 'e', model: ['e/e'], chatMaxTokens: 9, host: '127.0.0.1' };
    expect(serverConfig({}, env)).toMatchObject({ ...said, orders: 2, abstainBelow: 0.5, confidence: 'margin' });
    expect(serverConfig({}, env).alias).toEqual(['one', 'two', 'three']);
  });
  test('flags', () => {
    const flags = {
      host: '::1',
      port: '0',
      home: '/f',
      apiKey: 'f',
      model: 'f/f',
      device: 'gpu',
      dtype: 'q4',
      precision: 'int4',
      isolation: 'off',
      longInput: 'windows',
      chatMaxTokens: '300',
      orders: '8',
      abstainBelow: '1.0',
      escalate: 'https://a.example/v1',
      escalateBelow: '.5',
      metricsQuestions: true,
      batches: true,
      cacheDir: '/c',
      cacheSize: '1.5GiB',
      confidence: 'margin',
      shutdownDelay: '30',
      drainSeconds: '300',
      metricsNames: 'vllm',
      metricsPort: '9090',
      metricsHost: '127.0.0.1',
      memory: '8GB',
      evict: true,
      loadOnDemand: true,
      load: false,
      alias: ['small', 'gpt-x'],
      allowOrigin: ['http://x'],
      allowMediaHost: ['a.example.com', '*.example.org'],
    };
    expect(serverConfig(flags, env)).toEqual({
      ...flags,
      port: 0,
      model: ['f/f'],
      memory: 8e9,
      cacheSize: 1.5 * 2 ** 30,
      chatMaxTokens: 300,
      shutdownDelay: 30,
      drainSeconds: 300,
      metricsPort: 9090,
      orders: 8,
      abstainBelow: 1,
      escalateBelow: 0.5,
    });
  });
  test.each([
    ['512MiB', 512 * 2 ** 20],
    ['1.5GB', 1.5e9],
    ['2g', 2 * 2 ** 30],
  ])('a memory of %s', (memory, bytes) => {
    expect(serverConfig({}, { ASSAY_MEMORY: memory }).memory).toBe(bytes);
  });
  test('several models', () => {
    expect(serverConfig({}, { ASSAY_MODEL: 'a/b, c/d' }).model).toEqual(['a/b', 'c/d']);
    expect(serverConfig({ model: ['a/b', 'c/d'] }, env).model).toEqual(['a/b', 'c/d']);
  });
  test('an empty variable counts as not set', () => {
    const empty = { PORT: '', ASSAY_HOME: '', ASSAY_API_KEY: '', ASSAY_MODEL: '' };
    expect(serverConfig({}, empty)).toEqual(serverConfig({}, {}));
  });
  test('an address of IPv6 may be in brackets', () => {
    expect(serverConfig({ host: '[::1]' }, {}).host).toBe('::1');
  });

  test('a relative home becomes absolute', () => {
    expect(serverConfig({ home: 'here' }, {}).home).toBe(`${process.cwd()}/here`);
    expect(serverConfig({ home: '~/here' }, {}).home).toBe(`${home}/here`);
    expect(serverConfig({}, { ASSAY_HOME: '~/here' }).home).toBe(`${home}/here`);
  });
});

test.each([
  [{ port: '65536' }, '--port (PORT) must be 0 to 65535.'],
  [{ port: '-1' }, '--port (PORT) must be 0 to 65535.'],
  [{ port: '80a' }, '--port (PORT) must be 0 to 65535.'],
  [{ host: '' }, '--host must be an address or a host name.'],
  [{ model: '../x' }, '--model (ASSAY_MODEL) must be <namespace>/<name>, such as assay/starter.'],
  [{ memory: '8' }, '--memory (ASSAY_MEMORY) must be a size, such as 8GB or 512MiB.'],
  [{ device: 'tpu' }, '--device (ASSAY_DEVICE) must be one of auto, npu, gpu, cpu.'],
  [{ dtype: 'q3' }, '--dtype (ASSAY_DTYPE) must be one of q4f16, q4, int8, q8, fp16, fp32.'],
  [
    { precision: 'int2' },
    '--precision (ASSAY_PRECISION) must be one of auto, int8, int8-blocks, int4, published, float, keep.',
  ],
  [{ chatMaxTokens: '0' }, '--chat-max-tokens (ASSAY_CHAT_MAX_TOKENS) must be a whole number, 1 to 1048576.'],
  [{ chatMaxTokens: '1048577' }, '--chat-max-tokens (ASSAY_CHAT_MAX_TOKENS) must be a whole number, 1 to 1048576.'],
  [{ orders: '9' }, '--orders (ASSAY_ORDERS) must be a whole number, 1 to 8.'],
  [
    { escalate: 'far' },
    '--escalate (ASSAY_ESCALATE) must be the id of a model of this server, or the address of a server with /v1/systemone.',
  ],
  [{ abstainBelow: '1.1' }, '--abstain-below (ASSAY_ABSTAIN_BELOW) must be a number from 0 to 1.'],
  [{ alias: ['a b'] }, '--alias (ASSAY_ALIAS) must be names of 1 to 256 visible ASCII characters.'],
  [{ confidence: 'gini' }, '--confidence (ASSAY_CONFIDENCE) must be one of entropy, margin.'],
  [{ longInput: 'cut' }, '--long-input (ASSAY_LONG_INPUT) must be one of refuse, windows.'],
  [{ isolation: 'some' }, '--isolation (ASSAY_ISOLATION) must be one of auto, strict, off.'],
  [{ apiKey: 'a b' }, 'The API key has a space or a character that is not ASCII. Check that it was copied whole.'],
  [{ apiKey: 'a'.repeat(257) }, '--api-key (ASSAY_API_KEY) must be 1 to 256 visible ASCII characters.'],
  [
    { allowOrigin: ['http://x/'] },
    '--allow-origin must be an origin, such as http://localhost:3000 or app://obsidian.md.',
  ],
  [
    { allowMediaHost: ['https://a.example.com'] },
    '--allow-media-host must be a host name, such as images.example.com or *.example.com.',
  ],
  [
    { allowMediaHost: ['127.0.0.1'] },
    '--allow-media-host must be a host name, such as images.example.com or *.example.com.',
  ],
  [{ allowMediaHost: ['*'] }, '--allow-media-host must be a host name, such as images.example.com or *.example.com.'],
  [{ allowOrigin: ['*'] }, '--allow-origin must be an origin, such as http://localhost:3000 or app://obsidian.md.'],
])('%j is refused', (flags, message) => {
  expect(() => serverConfig(flags, {})).toThrow(new UsageError(message));
});

import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PLUGINS, type Plugin, wheelFor } from './catalogue.ts';
import type { WheelAccess } from './fetch-wheel.ts';
import { PluginStore } from './plugin-store.ts';
import { zipOf } from './zip.fixture.ts';

const FILES = { 'onnx_ep/libplugin.so': 'a library'.repeat(5_000), 'onnx_ep-1.dist-info/RECORD': 'x' };
const WHEEL = zipOf(FILES);
/** A wheel with a library that the plugin needs, and a file that it does not need. */
const NEEDED = zipOf({ 'vendor/libneeded.so': 'needed', 'vendor/other.so': 'not needed' });
const sha256Of = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const WITH_NEEDS: Partial<Plugin['wheels'][string]> = {
  files: { 'onnx_ep/libplugin.so': 'onnx_ep/libplugin.so' },
  needs: [
    {
      package: 'vendor-libs',
      file: 'vendor_libs-1-py3-none-any.whl',
      bytes: NEEDED.length,
      sha256: sha256Of(NEEDED),
      files: { 'vendor/libneeded.so': 'vendor/lib/libneeded.so.1' },
    },
  ],
};
const plugin = (bytes: Buffer, changes: Partial<Plugin['wheels'][string]> = {}): Plugin => ({
  ...PLUGINS[0]!,
  wheels: {
    'test-os': {
      file: 'onnx_ep-1-py3-none-any.whl',
      bytes: bytes.length,
      sha256: sha256Of(bytes),
      library: 'onnx_ep/libplugin.so',
      ...changes,
    },
  },
});

let home: string;
let store: PluginStore;
let server: Server;
let index: string;
/** Range headers that the server received, and how the server responds to them. */
let asked: (string | undefined)[];
let answer: { html?: boolean; cutAt?: number; ignoreRange?: boolean; status?: number; body?: Buffer };
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'assay-plugins-'));
  store = new PluginStore(home, 'test-os');
  [asked, answer] = [[], {}];
  server = createServer((request, response) => {
    if (answer.status) return void response.writeHead(answer.status).end();
    if (request.url?.startsWith('/simple/')) {
      const name = request.url === '/simple/vendor-libs/' ? 'vendor_libs' : 'onnx_ep';
      const file = `${name}-1-py3-none-any.whl`;
      if (answer.html) return void response.end(`<a href="../../files/${file}#sha256=1">${file}</a>`);
      response.setHeader('content-type', 'application/vnd.pypi.simple.v1+json');
      return void response.end(JSON.stringify({ files: [{ filename: file, url: `../../files/${file}` }] }));
    }
    const bytes = answer.body ?? (request.url?.includes('vendor_libs') ? NEEDED : WHEEL);
    const range = request.headers.range;
    asked.push(range);
    const from = range && !answer.ignoreRange ? Number(/\d+/.exec(range)) : 0;
    response.writeHead(from > 0 ? 206 : 200);
    if (answer.cutAt === undefined) return void response.end(bytes.subarray(from));
    response.write(bytes.subarray(from, answer.cutAt), () => void setTimeout(() => response.destroy(), 100));
    delete answer.cutAt;
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  index = `http://127.0.0.1:${(server.address() as AddressInfo).port}/simple`;
});
afterEach(() => {
  server.close();
  server.closeAllConnections();
  rmSync(home, { recursive: true, force: true });
});

const access = (changes: Partial<WheelAccess> = {}): WheelAccess => ({
  fetch,
  index,
  signal: new AbortController().signal,
  clock: { now: () => 0, sleep: async () => {} },
  random: () => 0,
  onBytes: () => {},
  ...changes,
});

describe('installing from a registry', () => {
  test.each([[{}], [{ html: true }], [{ cutAt: 100 }], [{ cutAt: 100, ignoreRange: true }]])(
    '%j',
    async (behaviour) => {
      answer = { ...behaviour };
      const wanted = plugin(WHEEL);
      const seen: number[] = [];
      const installed = await store.install(wanted, access({ onBytes: (bytes) => void seen.push(bytes) }));
      expect(installed).toMatchObject({ damage: null, bytes: FILES['onnx_ep/libplugin.so'].length + 1 });
      expect(readFileSync(installed.library, 'utf8')).toBe(FILES['onnx_ep/libplugin.so']);
      expect(seen.at(-1)).toBe(WHEEL.length);
      expect(asked).toEqual('cutAt' in behaviour ? [undefined, 'bytes=100-'] : [undefined]);
      expect(await store.find(wanted)).toEqual(installed);
      expect(readdirSync(join(home, 'plugins'))).toEqual(['openvino-1.8.1']);
    },
  );

  test('an interrupted download is continued by the next command', async () => {
    answer = { cutAt: 200 };
    const leaving = new AbortController();
    const stop = access({ signal: leaving.signal, onBytes: () => leaving.abort(new Error('Ctrl-C')) });
    await expect(store.install(plugin(WHEEL), stop)).rejects.toThrow('Ctrl-C');
    await store.install(plugin(WHEEL), access());
    expect(asked).toEqual([undefined, expect.stringMatching(/^bytes=\d+-$/)]);
  });

  test.each<[string, typeof answer, Partial<WheelAccess>, object]>([
    [
      'no registry',
      {},
      { index: 'http://127.0.0.1:1/simple' },
      { code: 'hub_unreachable', message: /127\.0\.0\.1:1.*PIP_INDEX_URL/s },
    ],
    ['no address', {}, { index: 'somewhere' }, { code: 'invalid_value', message: /PIP_INDEX_URL/ }],
    [
      'a % that is not an escape',
      {},
      { index: 'http://us%er:pw@127.0.0.1:1/simple' },
      { code: 'invalid_value', message: /%25/ },
    ],
    ['a registry that fails', { status: 503 }, {}, { code: 'hub_unreachable' }],
    [
      'other bytes',
      { body: Buffer.alloc(WHEEL.length) },
      {},
      { code: 'engine_failed', message: /is not onnx_ep-1.*sha256/s },
    ],
    ['too many bytes', { body: Buffer.concat([WHEEL, WHEEL]) }, {}, { code: 'engine_failed', message: /more bytes/ }],
  ])('%s', async (_, behaviour, changes, { code, message = /./ }: { code?: string; message?: RegExp }) => {
    answer = behaviour;
    const failure = store.install(plugin(WHEEL), access(changes));
    await expect(failure).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await store.list()).toEqual([]);
  });

  test('a registry without this wheel', async () => {
    const failure = store.install(plugin(WHEEL, { file: 'onnx_ep-2-py3-none-any.whl' }), access());
    await expect(failure).rejects.toThrow(/has no onnx_ep-2.*--file/s);
  });

  test('name and password of a mirror go to that mirror alone, as a header', async () => {
    const sent: [string, unknown][] = [];
    const spy: WheelAccess['fetch'] = (url, init) => {
      sent.push([url, (init.headers as Record<string, string>).authorization]);
      return fetch(url, init);
    };
    await store.install(plugin(WHEEL), access({ fetch: spy, index: index.replace('//', '//me:p%40ss@') }));
    const basic = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
    expect(sent.map(([, authorization]) => authorization)).toEqual([basic, basic]);
    expect(sent.every(([url]) => !url.includes('@'))).toBe(true);
  });
});

describe('a plugin that needs the libraries of another wheel', () => {
  const installed = {
    damage: null,
    bytes: FILES['onnx_ep/libplugin.so'].length + 'needed'.length,
    libraryPath: [expect.stringMatching(/onnx_ep$/), expect.stringMatching(/vendor.lib$/)],
  };

  test('gets both from the registry, with one progress, and only the files that it uses', async () => {
    const seen: [number, number][] = [];
    const wanted = plugin(WHEEL, WITH_NEEDS);
    const total = WHEEL.length + NEEDED.length;
    const found = await store.install(wanted, access({ onBytes: (...progress) => void seen.push(progress) }));
    expect(found).toMatchObject(installed);
    expect(readFileSync(join(found.libraryPath[1]!, 'libneeded.so.1'), 'utf8')).toBe('needed');
    expect(seen.at(-1)).toEqual([total, total]);
    expect(seen.map(([bytes]) => bytes)).toEqual(seen.map(([bytes]) => bytes).toSorted((one, other) => one - other));
    expect(readdirSync(join(home, 'plugins'))).toEqual(['openvino-1.8.1']);
  });

  test('does not fetch a wheel again that arrived before an interruption', async () => {
    const wanted = plugin(WHEEL, WITH_NEEDS);
    const leaving = new AbortController();
    const onBytes = (bytes: number): void => {
      if (bytes > WHEEL.length) leaving.abort(new Error('Ctrl-C'));
    };
    await expect(store.install(wanted, access({ signal: leaving.signal, onBytes }))).rejects.toThrow('Ctrl-C');
    asked = [];
    expect(await store.install(wanted, access())).toMatchObject(installed);
    expect(asked.length).toBeLessThanOrEqual(1);
  });

  test('finds the other wheel beside a local one', async () => {
    const wanted = plugin(WHEEL, WITH_NEEDS);
    const file = join(home, 'some.whl');
    writeFileSync(file, WHEEL);
    const alone = store.install(wanted, { file });
    await expect(alone).rejects.toThrow(/no .*vendor_libs-1-py3-none-any\.whl\. It is of vendor-libs==1\. Fetch it/);
    writeFileSync(join(home, 'vendor_libs-1-py3-none-any.whl'), NEEDED);
    expect(await store.install(wanted, { file })).toMatchObject(installed);
  });

  test('counts as damaged when another version of a library is needed', async () => {
    await store.install(plugin(WHEEL, WITH_NEEDS), access());
    const [needed] = WITH_NEEDS.needs!;
    const newer = plugin(WHEEL, { ...WITH_NEEDS, needs: [{ ...needed!, sha256: '0'.repeat(64) }] });
    expect(await store.find(newer)).toMatchObject({ damage: 'it was not installed completely' });
  });
});

describe('installing from a file', () => {
  test('the wheel itself, and another file', async () => {
    const file = join(home, 'some.whl');
    writeFileSync(file, WHEEL);
    expect(await store.install(plugin(WHEEL), { file })).toMatchObject({ damage: null });
    truncateSync(file, 100);
    await expect(store.install(plugin(WHEEL), { file })).rejects.toMatchObject({ code: 'engine_failed' });
  });

  test('a wheel that names files outside of it', async () => {
    const bytes = zipOf({ 'onnx_ep/libplugin.so': 'x', '../outside.so': 'x' });
    const file = join(home, 'some.whl');
    writeFileSync(file, bytes);
    await expect(store.install(plugin(bytes), { file })).rejects.toThrow(/invalid relative path|outside/);
    expect(readdirSync(join(home, 'plugins'))).toEqual([]);
  });
});

test('what was changed after it was installed is not used', async () => {
  const wanted = plugin(WHEEL);
  const { library } = await store.install(wanted, access());
  truncateSync(library, 10);
  expect(await store.find(wanted)).toMatchObject({ damage: 'its file libplugin.so is missing or changed' });
});

test('removing takes the plugin and what is left of its downloads', async () => {
  await store.install(plugin(WHEEL), access());
  writeFileSync(join(home, 'plugins', '.onnx_ep-1-py3-none-any.whl.part'), 'x');
  expect(await store.remove(plugin(WHEEL))).toBe(true);
  expect(readdirSync(join(home, 'plugins'))).toEqual([]);
  expect(await store.remove(plugin(WHEEL))).toBe(false);
});

const WHEELS = PLUGINS.flatMap((one) =>
  Object.entries(one.wheels).map(([platform, wheel]) => [one.name, platform, one, wheel] as const),
);

test.each(WHEELS)('the catalogue: %s for %s', (name, platform, one, wheel) => {
  expect(wheel.file).toContain(one.version);
  expect(wheel.file.startsWith(one.package.replaceAll('-', '_'))).toBe(true);
  for (const { sha256 } of [wheel, ...(wheel.needs ?? [])]) expect(sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(wheel.library).toMatch(/^win32/.test(platform) ? /\.dll$/ : /\.(so|dylib)$/);
  expect(wheelFor(one, platform)).toBe(wheel);
  expect(() => wheelFor(one, 'aix-ppc')).toThrow(`There is no ${name} plugin for aix-ppc; its vendor`);
});

import { chmod, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { hashSecret } from '../../lib/keys.ts';
import { tryLock } from '../../runtime/store/lock.ts';
import { KeysStore } from './keys-file.ts';

const newHome = () => mkdtemp(join(tmpdir(), 'assay-keys-'));
const ANY = { models: ['*'], scopes: [] };

test('a home without the file has no keys', async () => {
  expect(await new KeysStore(join(await newHome(), 'not/yet')).list()).toEqual([]);
});

test('a new key: the secret is given once, the file has its hash, and is for its owner alone', async () => {
  const store = new KeysStore(await newHome());
  const secret = await store.create({
    name: 'ann',
    models: ['assay/*'],
    scopes: ['admin'],
    requestsPerMinute: 5,
    priority: 'batch',
  });
  expect(secret).toMatch(/^sk-assay-[\w-]{32}$/);
  const text = await readFile(store.file, 'utf8');
  expect(text).not.toContain(secret);
  expect((await stat(store.file)).mode & 0o777).toBe(0o600);
  expect(await store.list()).toEqual([
    {
      name: 'ann',
      sha256: await hashSecret(secret),
      models: ['assay/*'],
      scopes: ['admin'],
      requestsPerMinute: 5,
      priority: 'batch',
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    },
  ]);
});

test.skipIf(process.platform === 'win32').each([
  [0o700, 0o600, null],
  [0o755, 0o600, null],
  [0o700, 0o640, /read .*keys\.json: chmod 600/],
  [0o700, 0o604, /read .*keys\.json: chmod 600/],
  [0o720, 0o600, /write to .*: chmod go-w/],
  [0o707, 0o600, /write to .*: chmod go-w/],
])('who else may use a folder of mode %o with a file of mode %o is told', async (folder, file, told) => {
  const home = await newHome();
  const store = new KeysStore(home);
  expect(store.exposure()).toBeNull();
  await store.create({ name: 'ann', ...ANY });
  await chmod(home, folder);
  await chmod(store.file, file);
  if (told) expect(store.exposure()).toMatch(told);
  else expect(store.exposure()).toBeNull();
});

test('secrets differ', async () => {
  const store = new KeysStore(await newHome());
  const secrets = await Promise.all(['a', 'b', 'c'].map((name) => store.create({ name, ...ANY })));
  expect(new Set(secrets).size).toBe(3);
});

test('a name is used once', async () => {
  const store = new KeysStore(await newHome());
  await store.create({ name: 'ann', ...ANY });
  await expect(store.create({ name: 'ann', ...ANY })).rejects.toThrow(/key named ann already/);
  expect(await store.list()).toHaveLength(1);
});

test('reads at once what another process writes', async () => {
  const home = await newHome();
  const [server, command] = [new KeysStore(home), new KeysStore(home)];
  expect(await server.list()).toEqual([]);
  await command.create({ name: 'ann', ...ANY });
  expect(await server.list()).toHaveLength(1);
  await command.revoke('ann');
  expect(await server.list()).toEqual([]);
  await expect(command.revoke('ann')).rejects.toThrow(/no key named ann/);
});

test('writers at the same time lose nothing and leave nothing behind', async () => {
  const home = await newHome();
  const names = Array.from({ length: 8 }, (_, i) => `key-${i}`);
  await Promise.all(names.map((name) => new KeysStore(home).create({ name, ...ANY })));
  const kept = (await new KeysStore(home).list()).map(({ name }) => name);
  expect(kept.toSorted()).toEqual(names);
  expect((await readdir(home)).toSorted()).toEqual(['keys.json', 'keys.json.lock']);
});

test.each(['', '{', '[]', '{"version":2,"keys":[]}', '{"version":1,"keys":[{"name":"x"}]}'])(
  'a damaged file is named and never written over: %s',
  async (text) => {
    const store = new KeysStore(await newHome());
    await writeFile(store.file, text);
    await expect(store.list()).rejects.toThrow(`${store.file} is damaged`);
    await expect(store.create({ name: 'ann', ...ANY })).rejects.toThrow(/is damaged/);
    expect(await readFile(store.file, 'utf8')).toBe(text);
  },
);

test('reports what is no file', async () => {
  const store = new KeysStore(await newHome());
  await mkdir(store.file);
  await expect(store.list()).rejects.toThrow('keys.json cannot be used (it is no file)');
  await expect(store.create({ name: 'ann', ...ANY })).rejects.toThrow('it is no file');
});

test('reports a home that cannot be used', async () => {
  const home = await newHome();
  await writeFile(join(home, 'file'), '');
  const store = new KeysStore(join(home, 'file/below'));
  const plainly = /file\/below\/keys\.json cannot be used \(ENOTDIR\)\. Choose another folder with --home/;
  await expect(store.list()).rejects.toThrow(plainly);
  await expect(store.create({ name: 'ann', ...ANY })).rejects.toThrow(plainly);
});

test('says what to do if the file stays locked', async () => {
  const store = new KeysStore(await newHome(), systemClock, 300);
  const held = tryLock(`${store.file}.lock`);
  await expect(store.create({ name: 'ann', ...ANY })).rejects.toThrow(
    /keys\.json could not be locked within 0\.3 seconds\. .* choose another folder with --home/,
  );
  held?.release();
  await store.create({ name: 'ann', ...ANY });
  expect(await store.list()).toHaveLength(1);
});

test('reports a lock file that cannot be opened', async () => {
  const store = new KeysStore(await newHome());
  await mkdir(`${store.file}.lock`);
  await expect(store.create({ name: 'ann', ...ANY })).rejects.toThrow(/keys\.json cannot be used \(EISDIR\)/);
});

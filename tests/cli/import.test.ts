import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tinyGguf } from '../../runtime/checkpoint/gguf/gguf.fixture.ts';
import { HubServer } from '../hub/hub-server.ts';
import { hubRepository } from '../hub/repository.ts';
import { assay, newFolder } from './assay.ts';

async function imported(bytes: Uint8Array, args: readonly string[] = []) {
  const folder = await newFolder();
  const file = join(folder, 'tiny model.gguf');
  await writeFile(file, bytes);
  const env = { HF_HUB_CACHE: join(folder, 'hub'), ASSAY_HOME: join(folder, 'home') };
  return { folder, env, ran: await assay(['import', file, ...args], { env }) };
}

test('a GGUF file becomes a model that is listed', async () => {
  const { env, ran } = await imported(tinyGguf());
  expect(ran).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/ load local\/tiny-model\n$/) });
  const { out } = await assay(['list', '--json'], { env: { ...env, PORT: '9' } });
  expect(JSON.parse(out).data).toContainEqual(
    expect.objectContaining({ id: 'local/tiny-model', status: 'downloaded' }),
  );
});

test.each<[string, Uint8Array, RegExp]>([
  ['is no GGUF file', new Uint8Array(100), /it is not a GGUF file/],
  ['ends early', tinyGguf().subarray(0, 500), /ends within its header/],
  ['claims more items than it has', hostile(), /more than \d+ items/],
  ['is of an unknown kind', tinyGguf([['llama.new_scale', { f32: 2 }]]), /metadata says llama\.new_scale: 2/],
])('a file that %s is refused, and nothing is stored', async (_, bytes, message) => {
  const { folder, ran } = await imported(bytes);
  expect(ran).toMatchObject({ code: 9, out: '', err: expect.stringMatching(message) });
  expect(await readdir(folder)).toEqual(['tiny model.gguf']);
});

test('a folder is refused by its name', async () => {
  const folder = await newFolder();
  const ran = await assay(['import', folder], { env: { HF_HUB_CACHE: folder, ASSAY_HOME: folder } });
  expect(ran).toMatchObject({ code: 2, err: expect.stringContaining(`${folder} is not a file. Name one GGUF file.`) });
});

test('one GGUF file of a repository is pulled by a part of its name, and used from then on', async () => {
  const files = { 'tiny-Q4_K_M.gguf': Buffer.from(tinyGguf()), 'tiny-Q8_0.gguf': Buffer.from('other') };
  const hub = await HubServer.start(hubRepository('acme/tiny-GGUF', files));
  onTestFinished(() => hub.stop());
  const folder = await newFolder();
  const env = { HF_ENDPOINT: hub.endpoint, HF_HUB_CACHE: join(folder, 'hub'), ASSAY_HOME: join(folder, 'home') };
  const pulled = await assay(['pull', 'acme/tiny-GGUF:Q4_K_M', '--json'], { env });
  expect(JSON.parse(pulled.out)).toMatchObject({ model: 'acme/tiny-GGUF', state: 'compiled', max_prompt_len: 64 });
  const again = await assay(['compile', 'acme/tiny-GGUF', '--json'], { env: { ...env, PORT: '9' } });
  expect(JSON.parse(again.out)).toMatchObject({ bytes: 0, compiled: false });
  const twice = await assay(['pull', 'acme/tiny-GGUF:Q4_K_M', '--file', 'Q8_0'], { env });
  expect(twice).toMatchObject({ code: 2, err: expect.stringMatching(/Name it once/) });
});

/** Returns a file whose first list of tokens says that it has 2^60 items. */
function hostile(): Uint8Array {
  const bytes = Buffer.from(tinyGguf());
  const at = bytes.indexOf('tokenizer.ggml.tokens') + 'tokenizer.ggml.tokens'.length;
  bytes.writeBigUInt64LE(2n ** 40n, at + 8);
  return bytes;
}

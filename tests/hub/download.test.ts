import * as fs from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import type { PullProgress } from '../../runtime/hub/pull-context.ts';
import { findLocalModel } from '../../runtime/store/hub-cache.ts';
import { HubServer } from './hub-server.ts';
import { MODEL, machine, neededFiles, randomModel, underNeededPaths } from './pull.ts';
import { neededInParts, READ_IN_PARTS } from './read-in-parts.ts';
import { hubRepository } from './repository.ts';

let hub: HubServer;
const model = randomModel();
const fileOf = (path: string) => model.files.find((file) => file.path === path)!;

beforeAll(async () => {
  hub = await HubServer.start(
    model,
    randomModel({ id: 'acme/gated', access: 'gated' }),
    randomModel({ id: 'acme/private', access: 'private' }),
    hubRepository('acme/torch', { 'config.json': '{}', 'tokenizer.json': '{}', 'pytorch_model.bin': 'x' }),
    hubRepository('acme/mamba', {
      'config.json': '{"model_type":"mamba2","architectures":["Mamba2ForCausalLM"]}',
      'tokenizer.json': '{}',
      'onnx/model_q4.onnx': 'weights',
    }),
    ...READ_IN_PARTS.map(([published]) => published),
    hubRepository('acme/untokened', { 'config.json': '{}', 'onnx/model.onnx': 'x' }),
    hubRepository('acme/evil', {
      '../../../x/genai_config.json': '{}',
      '../../../x/tokenizer.json': '{}',
      '../../../x/model.onnx': 'x',
    }),
  );
});
afterAll(() => hub.stop());

describe('a pull', () => {
  it('makes the cache that huggingface_hub makes, with only the files that are needed', async () => {
    const box = await machine(hub);
    const report = await box.pull();
    const needed = underNeededPaths(model);
    const fetched = neededFiles(model);
    expect(report).toEqual({ commit: model.commit, bytes: fetched.reduce((sum, f) => sum + f.content.length, 0) });
    const root = 'models--acme--tiny';
    const expected = [
      '.locks/models--acme--tiny/assay.lock',
      `${root}/refs/main`,
      ...fetched.map((f) => `${root}/blobs/${f.sha256 ?? f.oid}`),
      ...needed.map((f) => {
        const up = '../'.repeat(f.path.split('/').length + 1);
        return `${root}/snapshots/${model.commit}/${f.path} -> ${up}blobs/${f.sha256 ?? f.oid}`;
      }),
    ];
    expect(await box.tree()).toEqual(expected.sort());
    expect(await fs.readFile(box.paths.ref(MODEL, 'main'), 'utf8')).toBe(model.commit);
    for (const file of needed) {
      expect(file.content.equals(await fs.readFile(box.paths.snapshotFile(MODEL, model.commit, file.path)))).toBe(true);
    }
    const local = await findLocalModel(box.paths, MODEL, { device: 'CPU' });
    expect(local).toMatchObject({
      origin: 'hub',
      commit: model.commit,
      files: { dtype: 'q4', layout: 'transformers' },
    });
  });

  it('of an architecture that cannot run here ends before the weights', async () => {
    const box = await machine(hub);
    const before = hub.bytesSent('onnx/model_q4.onnx');
    const answer = box.pull({}, parseModelId('acme/mamba'));
    await expect(answer).rejects.toMatchObject({
      code: 'model_not_found',
      message: expect.stringMatching(/mamba2.*attention/),
    });
    expect(hub.bytesSent('onnx/model_q4.onnx')).toBe(before);
  });

  it.each(READ_IN_PARTS)('of $0.id fetches only encoders that are used', async (published, encoders) => {
    const box = await machine(hub);
    const seen: PullProgress[] = [];
    const id = parseModelId(published.id);
    const { bytes } = await box.pull({ onProgress: (progress) => seen.push(progress) }, id);
    const needed = neededInParts(published, encoders);
    expect(bytes).toBe(needed.reduce((sum, file) => sum + file.content.length, 0));
    const links = (await box.tree()).flatMap((name) => /snapshots\/\w+\/(\S+) ->/.exec(name)?.[1] ?? []);
    expect(links).toEqual(needed.map(({ path }) => path).sort());
    const downloading = seen.filter(({ stage }) => stage === 'downloading');
    expect(downloading.at(-1)).toMatchObject({ bytes, total: bytes });
    expect(await findLocalModel(box.paths, id, { device: 'CPU' })).not.toBeNull();
    expect((await box.pull({}, id)).bytes).toBe(0);
  });

  it('removes parts of files that the hub does not list any more, and keeps those of other number formats', async () => {
    const box = await machine(hub);
    const other = model.files.find(({ path }) => path === 'onnx/model_q4f16.onnx')!.sha256!;
    await fs.mkdir(box.paths.blobs(MODEL), { recursive: true });
    for (const hash of ['a'.repeat(64), other]) {
      await fs.writeFile(box.paths.partialBlob(MODEL, hash), 'x');
      await fs.writeFile(box.paths.partialJournal(MODEL, hash), 'x');
    }
    await box.pull();
    const blobs = (await fs.readdir(box.paths.blobs(MODEL))).filter((name) => name.includes('.'));
    expect(blobs.sort()).toEqual([`${other}.assay-journal`, `${other}.assay-partial`]);
  });

  it('of what is here fetches nothing', async () => {
    const box = await machine(hub);
    await box.pull();
    const before = hub.bytesSent();
    expect((await box.pull()).bytes).toBe(0);
    expect(hub.bytesSent()).toBe(before);
  });

  it('tells how far it is, without steps back, up to the whole', async () => {
    const box = await machine(hub);
    const seen: PullProgress[] = [];
    await box.pull({ onProgress: (progress) => seen.push(progress) });
    const bytes = seen.filter((p) => p.stage === 'downloading').map((p) => p.bytes);
    expect(bytes).toEqual([...bytes].sort((a, b) => a - b));
    expect(bytes.at(-1)).toBe(seen.find((p) => p.stage === 'downloading')?.total);
    expect(new Set(seen.map((p) => p.file))).toEqual(new Set(neededFiles(model).map((file) => file.path)));
  });

  it('takes another number format where it is asked to', async () => {
    const box = await machine(hub);
    await box.pull({ dtype: 'q4f16' });
    const tree = (await box.tree()).join('\n');
    expect(tree).toContain('onnx/model_q4f16.onnx ->');
    expect(tree).not.toContain('model_q4.onnx');
  });

  it('never shows the token to the storage behind the hub', async () => {
    const box = await machine(hub, { hub: { token: hub.token } });
    const from = hub.requests.length;
    await box.pull({}, parseModelId('acme/gated'));
    const seen = hub.requests.slice(from);
    expect(seen.filter((r) => r.on === 'resolve').every((r) => r.authorization === `Bearer ${hub.token}`)).toBe(true);
    expect(seen.filter((r) => r.on === 'content').length).toBeGreaterThan(2);
    expect(seen.filter((r) => r.on === 'content').every((r) => r.authorization === null)).toBe(true);
  });

  it('stops when it is cancelled, and goes on later from there', async () => {
    const box = await machine(hub);
    const controller = new AbortController();
    const onProgress = ({ bytes }: PullProgress) => bytes > 300_000 && controller.abort(new Error('enough'));
    await expect(box.pull({ signal: controller.signal, onProgress })).rejects.toThrow('enough');
    expect(await findLocalModel(box.paths, MODEL, { device: 'CPU' })).toBeNull();
    const rest = await box.pull();
    expect(rest.bytes).toBeLessThan(fileOf('onnx/model_q4.onnx_data').content.length - 200_000);
  });
});

describe('a pull that cannot be', () => {
  it.each([
    ['acme/none', 'model_not_found', /no model acme\/none, or it is private.*HF_TOKEN/],
    ['acme/private', 'model_not_found', /HF_TOKEN/],
    ['acme/gated', 'model_not_allowed', /gated: ask for access.*HF_TOKEN/],
    [
      'acme/torch',
      'model_not_found',
      /Looked for onnx\/model_q4\.onnx, .*genai_config\.json.*model\.safetensors\. It has pytorch_model\.bin\./,
    ],
    ['acme/evil', 'invalid_value', /file name cannot be stored safely/],
    ['acme/untokened', 'model_not_found', /has no tokenizer\.json/],
  ])('%s: %s', async (id, code, message) => {
    const box = await machine(hub);
    await expect(box.pull({}, parseModelId(id))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    expect((await box.tree()).filter((name) => /snapshots|blobs/.test(name))).toEqual([]);
  });

  it('says which formats there are when the one asked for is not', async () => {
    const box = await machine(hub);
    await expect(box.pull({ dtype: 'int8' })).rejects.toThrow(
      /model_int8\.onnx.*It has onnx\/model_q4\.onnx, onnx\/model_q4f16\.onnx/,
    );
  });

  it('says that nothing answers', async () => {
    const box = await machine(hub, { hub: { endpoint: 'http://127.0.0.1:9' } });
    await expect(box.pull()).rejects.toMatchObject({
      code: 'hub_unreachable',
      message: expect.stringMatching(/127\.0\.0\.1:9 cannot be reached.*HF_ENDPOINT/),
    });
  });

  it.each(['huggingface', 'localhost:5000', 'ftp://hub.example.com', 'http:'])(
    'says that HF_ENDPOINT=%s is not an address',
    async (endpoint) => {
      const box = await machine(hub, { hub: { endpoint } });
      await expect(box.pull()).rejects.toMatchObject({
        code: 'hub_unreachable',
        message: expect.stringMatching(/^HF_ENDPOINT is not an address/),
      });
    },
  );

  it.each(['hf_a\nb', '“hf_abc”', 'hf_a b'])('says that %j is not a token', async (token) => {
    const box = await machine(hub, { hub: { token } });
    await expect(box.pull()).rejects.toMatchObject({
      code: 'hub_unreachable',
      message: expect.stringMatching(/^The access token has a character that no token has/),
    });
  });

  it('says that it was told to stay offline', async () => {
    const box = await machine(hub, { hub: { offline: true } });
    await expect(box.pull()).rejects.toThrow(/HF_HUB_OFFLINE/);
  });

  it.each([[['z', 10, 1e16]], [null], ['10'], [-1], [0.5], [1e300]])(
    'believes no listing with the size %j',
    async (size) => {
      const file = {
        type: 'file',
        path: 'config.json',
        oid: 'a'.repeat(40),
        size: 10,
        lfs: { oid: 'b'.repeat(64), size },
      };
      const lying: typeof fetch = async (url) =>
        Response.json(String(url).includes('/tree/') ? [file] : { sha: 'c'.repeat(40) });
      const box = await machine(hub, { hub: { fetch: lying } });
      await expect(box.pull()).rejects.toThrow(/does not answer like a hub/);
    },
  );

  it('does not take a page of another server for a hub', async () => {
    const box = await machine(hub, { hub: { fetch: async () => Response.json({ hello: 'world' }) } });
    await expect(box.pull()).rejects.toThrow(/does not answer like a hub/);
  });
});

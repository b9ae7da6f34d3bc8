import { randomBytes, randomInt } from 'node:crypto';
import * as fs from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findLocalModel } from '../../runtime/store/hub-cache.ts';
import type { Fault } from './faults.ts';
import { HubServer } from './hub-server.ts';
import { expectWhole, type Machine, MODEL, machine, neededFiles, RANGE_BYTES, randomModel } from './pull.ts';

const DATA = 'onnx/model_q4.onnx_data';
let hub: HubServer;
const model = randomModel();
const data = model.files.find((file) => file.path === DATA)!;
const neededBytes = neededFiles(model).reduce((sum, file) => sum + file.content.length, 0);

beforeEach(async () => {
  hub = await HubServer.start(model);
});
afterEach(() => hub.stop());

async function expectWholeAndClean(box: Machine): Promise<void> {
  await expectWhole(box, model);
  expect((await box.tree()).filter((name) => /assay-(partial|journal|new)/.test(name))).toEqual([]);
}

/** Checks that nothing that looks like a model is visible. */
async function expectNothingVisible(box: Machine): Promise<void> {
  expect((await box.tree()).filter((name) => /snapshots|refs/.test(name))).toEqual([]);
  expect(await findLocalModel(box.paths, MODEL, { device: 'CPU' })).toBeNull();
}

describe('a connection that is cut', () => {
  it('at 20 random offsets goes on where it ended: at most one range comes twice', async () => {
    for (let i = 0; i < 20; i += 1) {
      const afterBytes = randomInt(RANGE_BYTES);
      const from = hub.bytesSent(DATA);
      hub.fail({ on: 'content', path: DATA, times: 1, fault: { kind: 'cut', afterBytes } });
      const box = await machine(hub);
      await box.pull();
      await expectWholeAndClean(box);
      // Bytes that the hub had sent into the broken connection may be lost: at most one range.
      expect(hub.bytesSent(DATA) - from, `cut after ${afterBytes}`).toBeLessThanOrEqual(
        data.content.length + RANGE_BYTES,
      );
    }
  });

  it('again and again, at 20 random offsets of one pull, ends well', async () => {
    for (let i = 0; i < 20; i += 1) {
      hub.fail({
        on: 'content',
        path: DATA,
        times: 1,
        fault: { kind: 'cut', afterBytes: 1 + randomInt(RANGE_BYTES - 1) },
      });
    }
    const box = await machine(hub);
    await box.pull();
    await expectWholeAndClean(box);
  });

  it('for good: the pull fails, keeps what it has, and the next one goes on from there', async () => {
    const restore = hub.fail({ on: 'content', path: DATA, fault: { kind: 'cut', afterBytes: 0 } });
    const box = await machine(hub, { settings: { connections: 1 } });
    // The first four ranges succeed.
    hub.fail({ on: 'content', path: DATA, times: 4, fault: { kind: 'throttle', bytesPerSecond: 1e9 } });
    restore();
    const always = hub.fail({ on: 'content', path: DATA, fault: { kind: 'cut', afterBytes: 0 } });
    await expect(box.pull()).rejects.toMatchObject({
      code: 'hub_unreachable',
      message: expect.stringMatching(/continues where it stopped/),
    });
    await expectNothingVisible(box);
    always();
    const from = hub.bytesSent(DATA);
    await box.pull();
    await expectWholeAndClean(box);
    expect(hub.bytesSent(DATA) - from).toBe(data.content.length - 4 * RANGE_BYTES);
  });
});

describe('a hub that', () => {
  it.each<[string, 'api' | 'resolve' | 'content', Fault]>([
    ['stalls', 'content', { kind: 'stall', afterBytes: 1000 }],
    ['ends the body early', 'content', { kind: 'short', afterBytes: 1000 }],
    ['sends whole files for ranges', 'content', { kind: 'no-ranges' }],
    ['answers 500', 'resolve', { kind: 'status', status: 500 }],
    ['answers 503 to the metadata', 'api', { kind: 'status', status: 503 }],
    ['says 429 with Retry-After', 'resolve', { kind: 'status', status: 429, headers: { 'retry-after': '1' } }],
    ['is slow', 'content', { kind: 'throttle', bytesPerSecond: 2_000_000 }],
  ])('%s for a while is waited out', async (_name, on, fault) => {
    hub.fail({ on, times: 3, fault });
    const box = await machine(hub, fault.kind === 'stall' ? { settings: { stallMs: 500 } } : {});
    await box.pull();
    await expectWholeAndClean(box);
  });

  it('never sends ranges sends a file once, besides to each of the first connections', async () => {
    const large = randomModel({ dataBytes: 64 * RANGE_BYTES });
    hub.put(large);
    hub.fail({ on: 'content', fault: { kind: 'no-ranges' } });
    const box = await machine(hub);
    const progress: number[] = [];
    await box.pull({ onProgress: ({ stage, bytes }) => stage === 'downloading' && progress.push(bytes) });
    await expectWhole(box, large);
    expect(hub.bytesSent(DATA)).toBeLessThanOrEqual((1 + box.settings.connections) * 64 * RANGE_BYTES);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    expect(progress.at(-1)).toBe(neededFiles(large).reduce((sum, file) => sum + file.content.length, 0));
  });

  it('sends no ranges any more, and cuts every second connection, loses nothing', async () => {
    hub.fail({ on: 'content', path: DATA, times: 3, fault: { kind: 'throttle', bytesPerSecond: 1e9 } });
    let requests = 0;
    const answer = (_request: unknown, response: ServerResponse): void => {
      requests += 1;
      response.writeHead(200, { 'content-length': data.content.length });
      const cut = requests % 2 === 1;
      const end = cut ? Math.min((requests + 1) * RANGE_BYTES, data.content.length) : data.content.length;
      response.write(data.content.subarray(0, end), () => (cut ? response.destroy() : response.end()));
    };
    hub.fail({ on: 'content', path: DATA, fault: { kind: 'custom', answer } });
    const box = await machine(hub);
    await box.pull();
    await expectWholeAndClean(box);
  });

  it('waits as long as Retry-After says', async () => {
    hub.fail({ on: 'api', times: 1, fault: { kind: 'status', status: 429, headers: { 'retry-after': '7' } } });
    const waits: number[] = [];
    const clock = { now: Date.now, sleep: (ms: number) => setImmediate(void waits.push(ms)) };
    const box = await machine(hub, { hub: { clock }, settings: { stallMs: 1e6 } });
    await box.pull();
    expect(waits).toContain(7000);
  });

  it.each<[number, string, RegExp]>([
    [500, 'hub_unreachable', /fault \(500\)/],
    [429, 'hub_unreachable', /slow down \(429\)/],
    [403, 'model_not_allowed', /does not let you read/],
    [401, 'model_not_found', /private/],
  ])('answers %i without end: %s', async (status, code, message) => {
    hub.fail({ on: 'content', fault: { kind: 'status', status } });
    const box = await machine(hub);
    await expect(box.pull()).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    await expectNothingVisible(box);
  });
});

describe('a flipped bit', () => {
  it.each(neededFiles(model).map((file) => file.path))(
    'in %s is caught and named, and nothing of it stays',
    async (path) => {
      const file = model.files.find((f) => f.path === path)!;
      const fault: Fault = { kind: 'corrupt', offset: randomInt(file.content.length) };
      const on = file.sha256 ? 'content' : 'resolve';
      const restore = hub.fail({ on, path, fault });
      const box = await machine(hub);
      await expect(box.pull()).rejects.toThrow(`${path} of ${MODEL} arrived damaged`);
      await expectNothingVisible(box);
      expect((await box.tree()).filter((name) => name.includes(file.sha256 ?? file.oid))).toEqual([]);
      restore();
      await box.pull();
      await expectWholeAndClean(box);
    },
  );

  it('on the way, once, costs one more transfer of that file', async () => {
    hub.fail({ on: 'content', path: DATA, times: 1, fault: { kind: 'corrupt', offset: 5 } });
    const box = await machine(hub, { settings: { connections: 1 } });
    await box.pull();
    await expectWholeAndClean(box);
    expect(hub.bytesSent()).toBe(neededBytes + data.content.length);
  });

  it('on the disk is found by the next pull, which mends it', async () => {
    const box = await machine(hub);
    await box.pull();
    const blob = box.paths.blob(MODEL, data.sha256!);
    const bytes = await fs.readFile(blob);
    bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
    await fs.writeFile(blob, bytes);
    expect((await box.pull()).bytes).toBe(data.content.length);
    await expectWholeAndClean(box);
  });

  it('or a folder in the place of a file or its link is found by the next pull, which mends it', async () => {
    const box = await machine(hub);
    await box.pull();
    for (const place of [box.paths.blob(MODEL, data.sha256!), box.paths.snapshotFile(MODEL, model.commit, DATA)]) {
      await fs.rm(place);
      await fs.mkdir(place);
      await fs.writeFile(`${place}/file`, '');
      await box.pull();
      await expectWholeAndClean(box);
    }
  });

  it('in a partial file that a crash left is found too', async () => {
    const box = await machine(hub);
    const size = data.content.length;
    await box.paths.makeDirectory(box.paths.blobs(MODEL));
    await fs.writeFile(box.paths.partialBlob(MODEL, data.sha256!), randomBytes(size));
    await fs.writeFile(
      box.paths.partialJournal(MODEL, data.sha256!),
      `assay-partial 1 ${size} ${RANGE_BYTES}\n0 ${RANGE_BYTES}\n1 70`,
    );
    await box.pull();
    await expectWholeAndClean(box);
  });
});

describe('what a try left of a file that is complete', () => {
  it.each<[string, ('partialBlob' | 'partialJournal')[]]>([
    ['a journal: it died between the rename and the removal', ['partialJournal']],
    ['both: another tool brought the file', ['partialBlob', 'partialJournal']],
  ])('%s, is removed by the next pull, which fetches nothing', async (_name, left) => {
    const box = await machine(hub);
    await box.pull();
    const layout = `assay-partial 1 ${data.content.length} ${RANGE_BYTES}\n`;
    for (const name of left) await fs.writeFile(box.paths[name](MODEL, data.sha256!), layout);
    expect((await box.pull()).bytes).toBe(0);
    await expectWholeAndClean(box);
  });
});

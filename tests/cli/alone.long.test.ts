import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HubServer } from '../hub/hub-server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { assay, newFolder } from './assay.ts';

/*
 * The command line without a server: the same app inside the command's own process, with a real engine and a real tiny
 * model.
 */

const QWEN = 'acme/qwen3';
let hub: HubServer;
let env: Record<string, string>;

beforeAll(async () => {
  hub = await HubServer.start(await fixtureModel('optimum/qwen3', QWEN));
  const base = await newFolder();
  // A port on which nothing can listen, so that no server of this machine is found.
  env = {
    HF_ENDPOINT: hub.endpoint,
    HF_HOME: join(base, 'hf'),
    ASSAY_HOME: join(base, 'assay'),
    PORT: '1',
    ASSAY_MODEL: QWEN,
  };
});
afterAll(() => hub.stop());

const run = (args: readonly string[], input?: string) =>
  assay(args, { env, ...(input === undefined ? {} : { input }) });

describe('without a server', { timeout: 60_000 }, () => {
  it('pulls, and a second time has everything', async () => {
    expect(await run(['pull', QWEN])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Fetched 356 kB\. Compiled for prompts up to 512 tokens\./),
    });
    expect((await run(['pull', QWEN])).out).toMatch(/^Everything was here already\. Compiled earlier/);
    expect((await run(['list'])).out).toMatch(/^acme\/qwen3\s+compiled$/m);
  });

  it('decides, extracts, runs and chats, each in a process that ends by itself', async () => {
    const decided = await run(['decide', 'Is this urgent?', '--option', 'yes', '--option', 'no'], 'Help!');
    expect(decided).toMatchObject({ code: 0, err: '' });
    expect(decided.out).toMatch(/^(yes|no)\n$/);
    const extracted = await run(['extract', '-k', 'who', '-c', 'Bo wrote', '--max-output-tokens', '8']);
    expect(Object.keys(JSON.parse(extracted.out))).toEqual(['who']);
    const tasks = JSON.stringify([{ type: 'decide', name: 'a', question: 'Red?', options: ['red', 'blue'] }]);
    expect(JSON.parse((await run(['run', tasks], 'It is red.')).out).a.value).toMatch(/^(red|blue)$/);
    expect((await run(['chat', 'Hi', '--max-output-tokens', '4'])).code).toBe(0);
  });

  it('compiles again for another prompt length, and removes what it made', async () => {
    expect((await run(['compile', QWEN, '--max-prompt-len', '64'])).out).toBe(
      `Compiled for prompts up to 64 tokens. Load it with: npm run -s assay -- load ${QWEN} --max-prompt-len 64\n`,
    );
    expect((await run(['rm', QWEN])).out).toMatch(
      /^Removed compiled files \(.*\), downloaded weights \(356 kB\), lock files of acme\/qwen3\.\n$/,
    );
    expect(await run(['decide', 'Is this urgent?'], 'Help!')).toMatchObject({
      code: 4,
      err: expect.stringContaining(`assay pull ${QWEN}`),
    });
  });

  it('says what is wrong with the hub or the model, with its exit code', async () => {
    expect(await run(['pull', 'acme/none'])).toMatchObject({
      code: 4,
      err: expect.stringContaining('no model acme/none'),
    });
    const offline = await assay(['pull', QWEN], { env: { ...env, HF_HUB_OFFLINE: '1' } });
    expect(offline).toMatchObject({ code: 7, err: expect.stringContaining('HF_HUB_OFFLINE') });
  });
});

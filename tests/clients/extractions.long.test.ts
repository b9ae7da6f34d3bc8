import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { KEY, startServer } from '../../benchmarks/http/server.ts';
import { pythonPackages } from './python-packages.ts';

const bin = await pythonPackages('clairic==0.1.0', 'trustcall-system-one==0.1.0a2', 'litellm==1.110.2');
const PROGRAM = fileURLToPath(new URL('extraction-clients.py', import.meta.url));

test.skipIf(bin === null)(
  'the clients of the extraction format work unchanged',
  async () => {
    const server = await startServer();
    onTestFinished(() => server.stop());
    const { stdout } = await promisify(execFile)(join(bin!, 'python'), [PROGRAM, server.url, KEY]);
    const lines = stdout.split('\n').filter((line) => line.startsWith('{"name"'));
    const said = Object.fromEntries(lines.map((line) => JSON.parse(line)).map(({ name, value }) => [name, value]));
    const types = { invoice: 'text', total: 'number', contacts: 'list', pay: 'estimate' };
    expect(said).toEqual({
      clairic: {
        invoice: 'TextAnswer',
        phone: 'TextAnswer',
        total: expect.stringMatching(/^NumberAnswer/),
        issued: 'DateAnswer',
        at: 'TimeAnswer',
        when: 'DatetimeAnswer',
        net: expect.stringMatching(/^DurationAnswer/),
        contacts: 'TextListAnswer',
        numbers: expect.stringMatching(/^ListAnswer/),
        pay: expect.stringMatching(/^EstimateAnswer/),
      },
      'clairic text': ['INV-7', 'INV-7', null],
      'clairic forecast': 'InvalidRequestError',
      'clairic key': 'AuthenticationError',
      'clairic length': 'ContextWindowExceededError',
      'cloudflare/clairic': types,
      'cloudflare/@cf/assay/starter': types,
      'trustcall fields': 'INV-7',
      'trustcall questions': 'noul',
    });
  },
  600_000,
);

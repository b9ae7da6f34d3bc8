import { execFile } from 'node:child_process';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { KEY, startServer } from '../../benchmarks/http/server.ts';
import { pythonPackages } from './python-packages.ts';

const bin = await pythonPackages('jevcompat==0.1.1', 'typesafe-sdk[zstd]==0.7.5');

/** The part of jevcompat's report that is checked. */
interface JevcompatReport {
  summary: Record<'MUST' | 'SHOULD', { passed: number; failed: number }> & { verdict: string };
  results: readonly { id: string; status: string; findings: readonly unknown[] }[];
}

test.skipIf(bin === null)(
  'the conformance suite of System One servers passes on a fresh start',
  async () => {
    const server = await startServer();
    onTestFinished(() => server.stop());
    const file = join(await mkdtemp(join(tmpdir(), 'jevcompat-')), 'report.json');
    const args = ['-m', 'jevcompat.cli', 'test', server.url, '--key', KEY, '--json', file];
    const said = await promisify(execFile)(join(bin!, 'python'), args).catch((error) => error);
    const report: JevcompatReport = JSON.parse(await readFile(file, 'utf8'));
    const failed = report.results.filter(({ status }) => status === 'fail');
    expect(failed, said.stdout).toEqual([]);
    expect(report.summary).toMatchObject({ MUST: { passed: 32, failed: 0 }, SHOULD: { passed: 15, failed: 0 } });
    expect(report.summary.verdict).toBe('conformant');
  },
  600_000,
);

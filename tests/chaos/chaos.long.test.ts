import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { prepareTemplate, runSeed } from './run-seed.ts';

/** The short form of `npm run chaos`: four seeds, two at a time. Times are not checked here. */

const PAIRS = [
  [1, 2],
  // Connections took the last file descriptors, so every request that reads the store failed.
  [5143, 5179],
] as const;

describe.runIf(process.platform === 'linux')('a server under load and faults', { timeout: 300_000 }, () => {
  let template: string;
  beforeAll(async () => {
    template = mkdtempSync(join(tmpdir(), 'assay-chaos-'));
    await prepareTemplate(template);
  }, 120_000);
  afterAll(() => rmSync(template, { recursive: true, force: true }));

  test.each(PAIRS)('keeps its promises with the seeds %i and %i', async (...seeds) => {
    const reports = await Promise.all(seeds.map((seed) => runSeed(seed, { seconds: 2, recoveryMs: 60_000, template })));
    for (const report of reports) {
      for (const [fault, reason] of Object.entries(report.missing)) console.warn(`SKIPPED FAULT "${fault}": ${reason}`);
      expect(report.violations, report.plan).toEqual([]);
      expect(report.outcomes[200], report.plan).toBeGreaterThan(0);
    }
  });
});

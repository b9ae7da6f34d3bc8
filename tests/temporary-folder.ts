import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Gives all tests of a run one folder for their temporary files, and removes it when the run has ended. */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'assay-tests-'));
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

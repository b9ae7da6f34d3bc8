import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ENGINE_MEMORY } from '../../runtime/supervisor/children/engine-child.ts';

const MIB = 1024 * 1024;
const CHURN = fileURLToPath(new URL('./kv-churn.ts', import.meta.url));

/** Measured: 2 MiB; with glibc's own threshold, or with a block for each layer, 54 to 135 MiB. */
test.runIf(process.platform === 'linux')(
  'the memory of dropped sequences goes back to the system',
  { timeout: 120_000 },
  async () => {
    const env = { ...process.env, ...ENGINE_MEMORY };
    const { stdout } = await promisify(execFile)(process.execPath, ['--max-semi-space-size=1', CHURN], { env });
    expect(Number(stdout) / MIB).toBeLessThan(30);
  },
);

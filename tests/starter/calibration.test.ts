import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { Calibrations } from '../../runtime/store/calibrations.ts';
import { sourceFiles, sourceHash } from '../../runtime/store/fingerprint.ts';
import { findLocalModel } from '../../runtime/store/hub-cache.ts';
import { StorePaths } from '../../runtime/store/paths.ts';

test('the calibration that ships with the starter is that of its files', async () => {
  const home = mkdtempSync(join(tmpdir(), 'assay-starter-'));
  const bundled = fileURLToPath(new URL('../../models', import.meta.url));
  const paths = new StorePaths({ hubCache: join(home, 'hub'), assayHome: home, bundled });
  const id = parseModelId('assay/starter');
  const model = await findLocalModel(paths, id, { device: 'CPU' });
  const fingerprint = sourceHash(await sourceFiles(paths, model!));
  expect(await new Calibrations(paths).find(id, fingerprint)).toMatchObject({ from: 'bundled' });
});

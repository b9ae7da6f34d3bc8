import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Calibration } from '../../lib/calibration/calibration.ts';
import { parseModelId } from '../../lib/model-id.ts';
import { Calibrations } from './calibrations.ts';
import { StorePaths } from './paths.ts';

const fingerprint = 'ab'.repeat(32);
const starter = parseModelId('assay/starter');
const fit = { temperature: 2, labels: 40, before: { ece: 0.2, brier: 0.3 }, after: { ece: 0.1, brier: 0.3 } };
const calibration: Calibration = {
  version: 1,
  fingerprint,
  model: starter,
  fitted: '2026-11-24',
  kinds: { choice: fit },
};

/** Creates a store with an empty home, and a bundled starter model with this calibration. */
function folders(bundled: object) {
  const base = mkdtempSync(join(tmpdir(), 'assay-calibrations-'));
  mkdirSync(join(base, 'models', 'starter'), { recursive: true });
  writeFileSync(join(base, 'models', 'starter', 'assay-calibration.json'), JSON.stringify(bundled));
  const roots = { hubCache: join(base, 'hub'), assayHome: join(base, 'home'), bundled: join(base, 'models') };
  return new Calibrations(new StorePaths(roots));
}

test('a calibration fitted here replaces the shipped one until it is removed', async () => {
  const store = folders({ ...calibration, fitted: '2020-01-01' });
  expect(await store.find(starter, fingerprint)).toMatchObject({
    from: 'bundled',
    calibration: { fitted: '2020-01-01' },
  });
  const file = await store.write(calibration);
  expect(await store.find(starter, fingerprint)).toEqual({ from: 'own', calibration });
  // A new calibration takes effect at once.
  writeFileSync(file, JSON.stringify({ ...calibration, fitted: '2026-12-01' }));
  utimesSync(file, 1, 1);
  expect(await store.find(starter, fingerprint)).toMatchObject({ calibration: { fitted: '2026-12-01' } });
  expect(await store.remove(fingerprint)).toBe(true);
  expect(await store.remove(fingerprint)).toBe(false);
  expect(await store.find(starter, fingerprint)).toMatchObject({ from: 'bundled' });
});

test('kinds that were not fitted here keep what ships with the model', async () => {
  const shipped = { ...calibration, kinds: { choice: fit, score: { ...fit, temperature: 3 } } };
  const store = folders(shipped);
  const kinds = { predicate: fit, score: { ...fit, temperature: 1.5 } };
  await store.write({ ...calibration, kinds });
  expect(await store.find(starter, fingerprint)).toMatchObject({
    from: 'own',
    calibration: { kinds: { choice: fit, ...kinds } },
  });
});

test.each<[string, object]>([
  ['of other weights', { ...calibration, fingerprint: 'cd'.repeat(32) }],
  ['that is damaged', { version: 1 }],
  ['with an impossible temperature', { ...calibration, kinds: { choice: { ...fit, temperature: 0 } } }],
])('a calibration %s is none', async (_, bundled) => {
  expect(await folders(bundled).find(starter, fingerprint)).toBeNull();
});

test('what ships with a model counts for its weights only, whichever are asked for first', async () => {
  const other = 'cd'.repeat(32);
  for (const order of [
    [fingerprint, other],
    [other, fingerprint],
  ]) {
    const store = folders(calibration);
    for (const asked of order) {
      expect(await store.find(starter, asked)).toEqual(asked === other ? null : { from: 'bundled', calibration });
    }
  }
});

test('a reader sees a calibration whole, old or new', async () => {
  const store = folders({});
  const reader = await open(await store.write(calibration));
  await store.write({ ...calibration, fitted: '2026-12-01' });
  expect(JSON.parse(await reader.readFile('utf8'))).toEqual(calibration);
  await reader.close();
  expect(await store.find(starter, fingerprint)).toMatchObject({ calibration: { fitted: '2026-12-01' } });
});

test('a calibration that cannot be removed is an error, not "there was none"', async () => {
  const store = folders({});
  const file = await store.write(calibration);
  rmSync(file);
  mkdirSync(file);
  await expect(store.remove(fingerprint)).rejects.toMatchObject({
    code: 'internal_error',
    message: expect.stringMatching(/^A file of ASSAY_HOME could not be used /u),
  });
});

test.runIf(existsSync('/dev/full'))('reports that the disk is full', async () => {
  const store = folders({});
  const file = await store.write(calibration);
  symlinkSync('/dev/full', `${file}.new`);
  await expect(store.write(calibration)).rejects.toMatchObject({
    code: 'disk_full',
    message: expect.stringMatching(/^The disk of ASSAY_HOME is full\. Free space/u),
  });
});

test.each<[string, (file: string) => void, RegExp]>([
  ['over a directory', (file) => mkdirSync(file), /^A file of ASSAY_HOME could not be used \(E[A-Z]+\)\. Try again/u],
  ['in a home that is a file', replaceHome, /^ASSAY_HOME cannot be written to \(E[A-Z]+\)\. Set it to /u],
])('reports that a calibration cannot be stored %s', async (_, spoil, message) => {
  const store = folders({});
  const file = await store.write(calibration);
  rmSync(file);
  spoil(file);
  await expect(store.write(calibration)).rejects.toMatchObject({
    code: 'internal_error',
    message: expect.stringMatching(message),
  });
});

function replaceHome(file: string): void {
  const home = join(file, '..', '..');
  rmSync(home, { recursive: true });
  writeFileSync(home, '');
}

test('refuses a fingerprint that leads out of the home', async () => {
  await expect(folders({}).find(starter, '../../etc/passwd')).rejects.toMatchObject({ code: 'invalid_value' });
});

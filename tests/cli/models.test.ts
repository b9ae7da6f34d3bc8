import { expect, onTestFinished, test } from 'vitest';
import { RECOMMENDED_MODELS } from '../../lib/models/recommended-models.ts';
import { HubServer } from '../hub/hub-server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { assay } from './assay.ts';

test('lists the models to start with, as a table and as JSON', async () => {
  const shown = await assay(['models']);
  expect(shown).toMatchObject({ code: 0, err: '' });
  expect(shown.out.split('\n')[0]).toMatch(/^MODEL +WEIGHTS +DOWNLOAD +MEMORY +FITS/);
  const { out } = await assay(['models', '--json']);
  const models: { id: string; fits: boolean }[] = JSON.parse(out);
  expect(models.map(({ id }) => id)).toEqual(RECOMMENDED_MODELS.map(({ id }) => id));
});

test('--check without a hub is one message, with exit code 7', async () => {
  const { code, out, err } = await assay(['models', '--check'], { env: { HF_ENDPOINT: 'http://127.0.0.1:9' } });
  expect({ code, out }).toEqual({ code: 7, out: '' });
  expect(err).toMatch(/^assay: The hub at 127\.0\.0\.1:9 cannot be reached\. [^\n]+\n$/);
});

test('--check finds models that the hub lacks, and a download of another size', async () => {
  const [first] = RECOMMENDED_MODELS;
  const hub = await HubServer.start(await fixtureModel('optimum/qwen3', first!.id));
  onTestFinished(() => hub.stop());
  const { code, out } = await assay(['models', '--check'], { env: { HF_ENDPOINT: hub.endpoint } });
  expect(code).toBe(1);
  const lines = out.trim().split('\n');
  expect(lines).toHaveLength(RECOMMENDED_MODELS.length);
  expect(lines[0]).toMatch(/to download, stated as/);
  expect(lines[1]).toMatch(/: The hub /);
});

import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { HubServer } from '../hub/hub-server.ts';
import { newBase, startServer } from '../model-server/server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { launch } from './chromium.ts';

/*
 * `npm run screenshots` makes the pictures of README and docs: the pages in Chromium, against a real server with the
 * starter model. Look at them before you commit them.
 */

const IMAGES = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const KEY = 'screenshot';

const hub = await HubServer.start(await fixtureModel('optimum/qwen3', 'acme/qwen3'));
const server = await startServer(hub, await newBase(), ['--api-key', KEY]);
const browser = await launch();
try {
  while ((await server.health()).state !== 'loaded') await new Promise((resolve) => setTimeout(resolve, 200));
  await mkdir(IMAGES, { recursive: true });
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
  await page.goto(`${server.url}/playground`);
  await page.getByLabel('API key').fill(KEY);
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await page.locator('.answer').nth(2).waitFor();
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: `${IMAGES}playground.png` });
  console.log(`${IMAGES}playground.png`);
} finally {
  await browser.close();
  await server.stop();
  await hub.stop();
}

import { readFile, writeFile } from 'node:fs/promises';
import { ROUTES } from '../../handlers/routes.ts';
import { openApiText } from './document.ts';

/*
 * Writes `openapi.json`. With `--check`, only compares the committed file with the schemas, and exits with 1 if they
 * differ.
 */

const file = new URL('../../openapi.json', import.meta.url);
const text = openApiText(ROUTES);
if (!process.argv.includes('--check')) {
  await writeFile(file, text);
  console.log(`openapi.json written, ${text.length} characters.`);
} else if ((await readFile(file, 'utf8').catch(() => '')) === text) {
  console.log('openapi.json is what the schemas say.');
} else {
  console.error('openapi.json is not what the schemas say. Run: npm run contract:write');
  process.exitCode = 1;
}

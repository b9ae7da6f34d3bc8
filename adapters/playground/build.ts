import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/**
 * Builds the server's web pages into `dist/pages`: the playground, the API reference with its renderer (swagger-ui),
 * and the documentation as Markdown. npm runs this script after an install in a checkout (`prepare`) and before
 * packing.
 */
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = join(ROOT, 'dist/pages');

await Promise.all(['playground', 'docs'].map((folder) => mkdir(join(PAGES, folder), { recursive: true })));
await build({
  entryPoints: [join(ROOT, 'adapters/playground/main.tsx')],
  outfile: join(PAGES, 'playground/main.js'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
});
for (const name of ['index.html', 'style.css', 'icon.svg']) {
  await copyFile(join(ROOT, 'adapters/playground', name), join(PAGES, 'playground', name));
}

const renderer = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js']) {
  await copyFile(join(renderer, name), join(PAGES, 'docs', name));
}
for (const name of ['index.html', 'style.css', 'start.js']) {
  await copyFile(join(ROOT, 'adapters/playground/docs', name), join(PAGES, 'docs', name));
}

// For language models that read documentation (https://llmstxt.org).
const names = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md') && name !== 'performance.md');
const documents = await Promise.all(
  ['README.md', ...names.map((name) => `docs/${name}`)].map(async (path) => ({
    path,
    text: await readFile(join(ROOT, path), 'utf8'),
  })),
);
const titleOf = (text: string) => /^# (.+)$/m.exec(text)?.[1] ?? '';
for (const { path, text } of documents) await writeFile(join(PAGES, 'docs', path.replace('docs/', '')), text);
const links = documents.map(({ path, text }) => `- [${titleOf(text)}](/docs/${path.replace('docs/', '')})`);
const summary = 'Many small judgement tasks about one shared context in one request, with a local language model.';
await writeFile(
  join(PAGES, 'llms.txt'),
  ['# Assay', '', `> ${summary}`, '', '## Docs', '', ...links, '- [OpenAPI contract](/openapi.json)', ''].join('\n'),
);
await writeFile(join(PAGES, 'llms-full.txt'), documents.map(({ text }) => text).join('\n\n'));

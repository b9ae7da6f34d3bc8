import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { indexOf, readDocuments } from './documents.ts';

/*
 * Builds the server's web pages into `dist/pages`: the playground, the API reference with its renderer (swagger-ui),
 * and the documentation as Markdown. npm runs this script after an install in a checkout (`prepare`) and before
 * packing.
 */
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = join(ROOT, 'dist/pages');

await rm(PAGES, { recursive: true, force: true });
await Promise.all(['playground', 'docs'].map((folder) => mkdir(join(PAGES, folder), { recursive: true })));
await build({
  entryPoints: [join(ROOT, 'adapters/playground/main.tsx')],
  outdir: join(PAGES, 'playground'),
  bundle: true,
  // What is imported only when its tab is opened is a file of its own: Evaluate has the schemas of requests.
  splitting: true,
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

// At their paths in the repository, so that their links work.
const { documents, pictures } = await readDocuments(ROOT);
const write = async (path: string, content: string | Uint8Array) => {
  await mkdir(dirname(join(PAGES, path)), { recursive: true });
  await writeFile(join(PAGES, path), content);
};
for (const { path, text } of documents) await write(path, text);
for (const path of pictures) await write(path, await readFile(join(ROOT, path)));
// What a reader rarely needs is not part of the text for language models: figures, history, other languages.
const needed = documents.filter(({ path }) => /^(README|docs\/)/.test(path));
const optional = documents.filter((document) => !needed.includes(document));
await write('llms.txt', indexOf(needed, optional));
await write('llms-full.txt', needed.map(({ text }) => text).join('\n\n'));

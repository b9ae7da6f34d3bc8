import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page, Pages } from '../../handlers/pages.ts';

/** Output folders of `npm run build:pages`: in a checkout, and in the published package. */
const FOLDERS = ['../../dist/pages', '../../pages'].map((path) => fileURLToPath(new URL(path, import.meta.url)));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
};

const ICON = '/playground/icon.svg';

/**
 * Reads the built web pages. Returns them by URL path; the map is empty if they were not built. The `index.html` of a
 * folder is at the folder's path. The icon is also at `/favicon.ico`, which browsers request for documents that name no
 * icon, such as `/openapi.json`.
 */
export async function readPages(): Promise<Pages> {
  for (const folder of FOLDERS) {
    const pages = await pagesOf(folder);
    const icon = pages.get(ICON);
    if (pages.size > 0) return icon ? new Map([...pages, ['/favicon.ico', icon]]) : pages;
  }
  return new Map();
}

async function pagesOf(folder: string): Promise<Pages> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = files.map(async (file): Promise<[string, Page]> => {
    const path = `/${file.slice(folder.length + 1).replaceAll('\\', '/')}`;
    const contentType = TYPES[extname(file)] ?? 'application/octet-stream';
    return [path.replace(/\/index\.html$/, ''), { contentType, body: new Uint8Array(await readFile(file)) }];
  });
  return new Map(await Promise.all(read));
}

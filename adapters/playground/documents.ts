import { readdir, readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';

/** Holds a document of the repository, as the server serves it. */
export interface Document {
  /** Path in the repository, such as `docs/cli.md`; the URL path is the same after a `/`. */
  path: string;
  title: string;
  text: string;
}

/** Paths of the documents outside `docs/` to which its pages and the README link. */
const OTHERS = ['SECURITY.md', 'CHANGELOG.md', 'clients/README.md', 'models/starter/README.md', 'benchmarks/report.md'];

/**
 * Returns the README, the documents in `docs/` and those of `OTHERS`, and the paths of the pictures in `docs/`. `root`
 * is the folder of the repository.
 */
export async function readDocuments(root: string): Promise<{ documents: Document[]; pictures: string[] }> {
  const docs = (await readdir(join(root, 'docs'), { recursive: true })).map((name) => `docs/${name}`).sort();
  const paths = ['README.md', ...docs.filter((path) => path.endsWith('.md')), ...OTHERS];
  const pictures = docs.filter((path) => /\.(svg|png)$/.test(path));
  const served = new Set([...paths, ...pictures, 'openapi.json']);
  const documents = paths.map(async (path) => {
    const text = await readFile(join(root, path), 'utf8');
    return { path, title: /^# (.+)$/m.exec(text)?.[1] ?? path, text: withServedLinks(path, text, served) };
  });
  return { documents: await Promise.all(documents), pictures };
}

/**
 * Returns `text`, the Markdown of the document at `path`, in which each link to a file that is not in `served` is
 * replaced by the link's text. Leaves code blocks as they are.
 */
export function withServedLinks(path: string, text: string, served: ReadonlySet<string>): string {
  const link = /```[\s\S]*?```|(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g;
  return text.replace(link, (whole: string, label: string | undefined, target: string | undefined) => {
    if (label === undefined || target === undefined || /^(#|https?:)/.test(target)) return whole;
    const file = posix.join(posix.dirname(path), target.replace(/#.*/, ''));
    return served.has(file) ? whole : label;
  });
}

/** Returns the text of `/llms.txt` (https://llmstxt.org), with a link to each document; `optional` ones come last. */
export function indexOf(documents: readonly Document[], optional: readonly Document[]): string {
  const links = (list: readonly Document[]) => list.map(({ path, title }) => `- [${title}](/${path})`);
  const summary = 'Many small judgement tasks about one shared context in one request, with a local language model.';
  const lines = ['# Assay', '', `> ${summary}`, '', '## Docs', '', ...links(documents)];
  return [...lines, '- [OpenAPI contract](/openapi.json)', '', '## Optional', '', ...links(optional), ''].join('\n');
}

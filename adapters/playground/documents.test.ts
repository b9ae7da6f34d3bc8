import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { indexOf, readDocuments, withServedLinks } from './documents.ts';

const served = new Set(['README.md', 'docs/cli.md', 'openapi.json']);

test.each([
  ['README.md', '[flags](docs/cli.md#flags)', '[flags](docs/cli.md#flags)'],
  ['docs/cli.md', '[contract](../openapi.json) and [above](#x)', '[contract](../openapi.json) and [above](#x)'],
  ['docs/cli.md', '[a test](../lib/x.test.ts), [hub](https://huggingface.co)', 'a test, [hub](https://huggingface.co)'],
  ['docs/cli.md', '[`code`](other.md)\n```\n[kept](other.md)\n```', '`code`\n```\n[kept](other.md)\n```'],
  ['README.md', '![A picture](docs/missing.png)', '![A picture](docs/missing.png)'],
])('%s: %j becomes %j', (path, text, expected) => {
  expect(withServedLinks(path, text, served)).toBe(expected);
});

test('each link and picture of a served document is served', async () => {
  const { documents, pictures } = await readDocuments(fileURLToPath(new URL('../../', import.meta.url)));
  const paths = new Set([...documents.map(({ path }) => path), ...pictures, 'openapi.json']);
  const targets = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)\s#]+)[^)\s]*\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !target.startsWith('http'))
      .map((target) => new URL(target, `http://host/${path}`).pathname.slice(1)),
  );
  expect(targets.length).toBeGreaterThan(50);
  expect(targets.filter((target) => !paths.has(target))).toEqual([]);
});

test('the index has the optional documents apart', () => {
  const page = (path: string) => ({ path, title: path.toUpperCase(), text: '' });
  expect(indexOf([page('a.md')], [page('docs/b.md')])).toContain(
    '- [A.MD](/a.md)\n- [OpenAPI contract](/openapi.json)\n\n## Optional\n\n- [DOCS/B.MD](/docs/b.md)\n',
  );
});

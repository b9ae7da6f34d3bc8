import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LIMITS, packageFigures, packageProblems } from './package-contents.ts';
import { checksumLines, provenanceOf } from './provenance.ts';

interface Locked {
  version?: string;
  integrity?: string;
  resolved?: string;
  link?: boolean;
}

const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as {
  lockfileVersion: number;
  packages: Record<string, Locked>;
};
const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

describe('the lockfile', () => {
  const packages = Object.entries(lock.packages).filter(([path]) => path !== '');

  it('names the bytes of every package, and no address from which other bytes could come', () => {
    expect(packages.length).toBeGreaterThan(100);
    for (const [path, { integrity, resolved, link }] of packages) {
      expect(integrity, path).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
      expect({ path, resolved, link }).toEqual({ path, resolved: undefined, link: undefined });
    }
  });

  it('is of exact versions', () => {
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
      expect(lock.packages[`node_modules/${name}`]?.version, name).toBe(version);
    }
  });
});

it('the provenance names each file, the commit and the lockfile', () => {
  const statement = provenanceOf({
    files: { 'a.tgz': '1', 'a.cdx.json': '2' },
    source: { uri: 'git+https://a.example/b', commit: 'c' },
    lockfile: '3',
    versions: { node: 'v24', npm: '11' },
    started: 's',
    finished: 'f',
  });
  expect(statement).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [
      { name: 'a.tgz', digest: { sha256: '1' } },
      { name: 'a.cdx.json', digest: { sha256: '2' } },
    ],
    predicate: {
      buildDefinition: {
        resolvedDependencies: [
          { uri: 'git+https://a.example/b', digest: { gitCommit: 'c' } },
          { name: 'package-lock.json', digest: { sha256: '3' } },
        ],
      },
    },
  });
  expect(checksumLines({ a: '1', b: '2' })).toBe('1  a\n2  b\n');
});

describe('the package', () => {
  const packed = (paths: readonly string[], sizes = {}) => ({
    filename: 'a.tgz',
    size: 1_500_000,
    unpackedSize: 2_000_000,
    files: paths.map((path) => ({ path, size: 1 })),
    ...sizes,
  });

  it.each([
    ['dist/lib/a.js', true],
    ['dist/adapters/node/bin.d.ts', true],
    ['dist/pages/playground/index.html', true],
    ['models/starter/onnx/model_q4f16.onnx', true],
    ['package.json', true],
    ['dist/lib/a.test.js', false],
    ['dist/runtime/plugins/zip.fixture.js', false],
    ['dist/tests/a.js', false],
    ['lib/a.ts', false],
    ['.env', false],
  ])('%s may be in it: %s', (path, allowed) => {
    expect(packageProblems(packed([path]))).toEqual(allowed ? [] : [expect.stringContaining(`${path} is no runtime`)]);
  });

  it('has limits on its size', () => {
    const large = packed([], { size: LIMITS.size + 1, unpackedSize: LIMITS.unpackedSize + 1 });
    expect(packageProblems(large)).toEqual([
      expect.stringContaining('18000001 bytes packed'),
      expect.stringContaining('28000001 bytes unpacked'),
    ]);
    expect(packageFigures(packed(['a']))).toBe(
      'a.tgz: 1.5 MB packed (limit 18.0 MB), 2.0 MB unpacked (limit 28.0 MB), 1 files',
    );
  });
});

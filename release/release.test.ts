import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
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

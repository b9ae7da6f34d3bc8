/** Holds the facts about how a release was built, as far as this machine knows them. */
export interface BuildFacts {
  /** SHA-256 hash of each file of the release, by file name. */
  files: Readonly<Record<string, string>>;
  /** Address of the source repository, and the commit that was checked out without any change. */
  source: { uri: string; commit: string };
  /** SHA-256 hash of package-lock.json, which states the hash of every dependency. */
  lockfile: string;
  versions: { node: string; npm: string };
  /** Time at which the build started (RFC 3339). */
  started: string;
  /** Time at which the build ended (RFC 3339). */
  finished: string;
}

/**
 * Returns an in-toto statement that says from which commit, and with which dependencies and tools, the files were
 * built. It is unsigned, so it is only a record to compare with; the statement that `npm publish --provenance` signs is
 * the proof. Sources: in-toto attestation v1, SLSA provenance v1.
 */
export function provenanceOf({ files, source, lockfile, versions, started, finished }: BuildFacts): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: Object.entries(files).map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:assay:npm-pack:v1',
        externalParameters: { source: source.uri, script: 'npm run release' },
        internalParameters: versions,
        resolvedDependencies: [
          { uri: source.uri, digest: { gitCommit: source.commit } },
          { name: 'package-lock.json', digest: { sha256: lockfile } },
        ],
      },
      runDetails: {
        builder: { id: 'urn:assay:release-script:v1' },
        metadata: { startedOn: started, finishedOn: finished },
      },
    },
  };
}

/** Returns the lines that `sha256sum --check` reads. */
export function checksumLines(files: Readonly<Record<string, string>>): string {
  return Object.entries(files)
    .map(([name, sha256]) => `${sha256}  ${name}\n`)
    .join('');
}

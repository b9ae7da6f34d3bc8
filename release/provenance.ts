/** Describes what a release was made of and by, as far as this machine can tell. */
export interface BuildFacts {
  /** Files of the release by name, each with the sha256 of its bytes. */
  files: Readonly<Record<string, string>>;
  /** The source's address, and the commit that was checked out, without any change. */
  source: { uri: string; commit: string };
  /** sha256 of package-lock.json, which names the bytes of every dependency. */
  lockfile: string;
  versions: { node: string; npm: string };
  /** Times as RFC 3339. */
  started: string;
  finished: string;
}

/**
 * Returns an in-toto statement that says from which commit, with which dependencies and tools the files were made.
 * Unsigned it is a record to compare with; the one that `npm publish --provenance` signs is the proof. Sources: in-toto
 * attestation v1, SLSA provenance v1.
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

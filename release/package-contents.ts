/** Holds the part of the output of `npm pack --json` that is used here. */
export interface Packed {
  filename: string;
  /** Bytes of the tarball. */
  size: number;
  unpackedSize: number;
  files: readonly { path: string; size: number }[];
}

/**
 * Limits of the package's size, in bytes. The starter model takes 14.6 MB packed and 16.6 MB unpacked; the dependencies
 * are not in the package. Why it has the model: docs/security.md.
 */
export const LIMITS = { size: 18_000_000, unpackedSize: 28_000_000 } as const;

/** Paths of the only files that the package may contain. */
const RUNTIME = [
  /^(LICENSE|README\.md|package\.json|openapi\.json|release\/other-systems\.js)$/,
  /^dist\/(adapters|handlers|lib|runtime)\/.+\.(js|d\.ts)$/,
  /^dist\/pages\/.+\.(html|js|css|svg|png|md|txt)$/,
  /^models\/[a-z-]+\/([^/]+\.(json|md)|onnx\/[^/]+\.onnx)$/,
];
// The report of benchmarks is among the documents that the server shows.
const NOT_RUNTIME = /\.(test|fixture)\.|\/(tests|benchmarks)\/(?!report\.md$)/;

/** Returns the problems of the package, one line each; an empty list if there are none. */
export function packageProblems({ size, unpackedSize, files }: Packed): string[] {
  const stray = files
    .map(({ path }) => path)
    .filter((path) => NOT_RUNTIME.test(path) || !RUNTIME.some((pattern) => pattern.test(path)));
  return [
    ...stray.map(
      (path) => `${path} is no runtime file. Exclude it in tsconfig.build.json or in "files" of package.json.`,
    ),
    ...(size > LIMITS.size ? [`The package has ${size} bytes packed; at most ${LIMITS.size} are allowed.`] : []),
    ...(unpackedSize > LIMITS.unpackedSize
      ? [`The package has ${unpackedSize} bytes unpacked; at most ${LIMITS.unpackedSize} are allowed.`]
      : []),
  ];
}

/** Returns the figures of the package as one line. */
export function packageFigures({ filename, size, unpackedSize, files }: Packed): string {
  const mb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  return (
    `${filename}: ${mb(size)} packed (limit ${mb(LIMITS.size)}), ` +
    `${mb(unpackedSize)} unpacked (limit ${mb(LIMITS.unpackedSize)}), ${files.length} files`
  );
}

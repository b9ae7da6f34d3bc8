import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { checksumLines, provenanceOf } from './provenance.ts';

/*
 * `npm run release` builds the package from a clean checkout into `release/out`, with a bill of materials (CycloneDX),
 * checksums and a record of how it was built. `-- --publish` also publishes it, with a provenance that npm signs; this
 * works only in a CI that npm trusts.
 */

const OUT = 'release/out';
const { values } = parseArgs({ options: { publish: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } });
if (values.help) {
  console.log('npm run release [-- --publish]   package, bill of materials, checksums and provenance into release/out');
  process.exit(0);
}

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, stdio: ['ignore', 'pipe', 'inherit'] });
const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

const { name, version } = JSON.parse(readFileSync('package.json', 'utf8')) as { name: string; version: string };
const started = new Date().toISOString();

// A release from uncommitted changes could not be compared with anything.
if (run('git', 'status', '--porcelain').trim()) {
  console.error('There are changes that are not committed. Commit or remove them, then release again.');
  process.exit(2);
}
const commit = run('git', 'rev-parse', 'HEAD').trim();

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
// Installs exactly what the lockfile states: `npm ci` refuses any other bytes.
run('npm', 'ci');
run('npm', 'run', 'build');
console.log(run('npm', 'run', '--silent', 'package:check').trim());
// Without the package's scripts, which would build again and write into the JSON output.
const [packed] = JSON.parse(run('npm', 'pack', '--ignore-scripts', '--json', '--pack-destination', OUT)) as {
  filename: string;
}[];
const sbom = `${name}-${version}.cdx.json`;
writeFileSync(join(OUT, sbom), billOfMaterials());

const made = Object.fromEntries([packed!.filename, sbom].map((file) => [file, sha256(join(OUT, file))]));
const statement = provenanceOf({
  files: made,
  source: { uri: sourceUri(), commit },
  lockfile: sha256('package-lock.json'),
  versions: { node: process.version, npm: run('npm', '--version').trim() },
  started,
  finished: new Date().toISOString(),
});
const provenance = `${name}-${version}.provenance.json`;
writeFileSync(join(OUT, provenance), `${JSON.stringify(statement, null, 2)}\n`);
const files = { ...made, [provenance]: sha256(join(OUT, provenance)) };
writeFileSync(join(OUT, 'SHA256SUMS'), checksumLines(files));
console.log(`${OUT}: ${Object.keys(files).join(', ')}, SHA256SUMS`);

if (values.publish) run('npm', 'publish', join(OUT, packed!.filename), '--provenance', '--access', 'public');

/**
 * Returns a bill of materials as JSON: every package that an install brings, on any system, with its version, licence
 * and hash. It is made from a lockfile without the development packages, because `npm sbom --omit dev` also omits what
 * these need beside the server, such as onnxruntime-node. npm names the root after the folder.
 */
function billOfMaterials(): string {
  const folder = join(mkdtempSync(join(tmpdir(), 'assay-bill-')), name);
  mkdirSync(folder);
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) copyFileSync(file, join(folder, file));
  try {
    const inFolder = (...args: string[]): string => run('npm', '--prefix', folder, ...args);
    inFolder('pkg', 'delete', 'devDependencies');
    inFolder('prune', '--package-lock-only', '--ignore-scripts');
    return inFolder('sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application');
  } finally {
    rmSync(dirname(folder), { recursive: true });
  }
}

/** Returns the address of the repository, or `local` for one without a remote. */
function sourceUri(): string {
  try {
    return `git+${run('git', 'remote', 'get-url', 'origin').trim()}`;
  } catch {
    return 'local';
  }
}

import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { messageOf } from '../../lib/errors.ts';
import { FINGERPRINT, VERSION, writeGenerated } from './contract.ts';
import { dotnet } from './dotnet.ts';
import { java } from './java.ts';
import type { Language, ServerUrls } from './language.ts';
import { DIST, ROOT, WORK } from './paths.ts';
import { python } from './python.ts';
import { ruby } from './ruby.ts';
import { rust } from './rust.ts';
import { withServers } from './servers.ts';
import { typescript } from './typescript.ts';

const LANGUAGES: readonly Language[] = [typescript, python, ruby, rust, java, dotnet];

const HELP = `npm run clients [-- language ...] [--no-test]

Generates, builds, packs and tests the clients whose toolchains are on this machine; packages go to clients/dist/.
Languages: ${LANGUAGES.map(({ name }) => name).join(', ')}; all by default.`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { test: { type: 'boolean', default: true }, help: { type: 'boolean' } },
  allowNegative: true,
});
if (values.help) console.log(HELP);
else await makeAll(chosen(positionals));

function chosen(names: string[]): readonly Language[] {
  const unknown = names.find((name) => !LANGUAGES.some((one) => one.name.toLowerCase() === name.toLowerCase()));
  if (unknown !== undefined) throw new Error(`No client for ${unknown}.\n\n${HELP}`);
  return LANGUAGES.filter(
    ({ name }) => names.length === 0 || names.some((one) => one.toLowerCase() === name.toLowerCase()),
  );
}

async function makeAll(languages: readonly Language[]): Promise<void> {
  mkdirSync(WORK, { recursive: true });
  if (positionals.length === 0) rmSync(DIST, { recursive: true, force: true });
  mkdirSync(DIST, { recursive: true });
  const outcomes = values.test
    ? await withServers((urls) => makeEach(languages, urls))
    : await makeEach(languages, undefined);
  console.log(`\nClients of contract ${VERSION}, ${FINGERPRINT.slice(0, 12)}:`);
  for (const { name, outcome } of outcomes) console.log(`  ${name.padEnd(12)}${outcome}`);
  if (outcomes.some(({ outcome }) => outcome.startsWith('FAILED'))) process.exitCode = 1;
}

async function makeEach(languages: readonly Language[], urls: ServerUrls | undefined) {
  const outcomes: { name: string; outcome: string }[] = [];
  for (const language of languages) outcomes.push({ name: language.name, outcome: await make(language, urls) });
  return outcomes;
}

/**
 * Generates, packs and tests the client of one language. Returns a line for the report. Never throws, so the other
 * languages are built even if this one fails.
 */
async function make(language: Language, urls: ServerUrls | undefined): Promise<string> {
  const missing = language.missing();
  console.log(`\n== ${language.name} ${missing ? `SKIPPED: ${missing}` : ''}`);
  if (missing) return `SKIPPED: ${missing}`;
  const begin = performance.now();
  const seconds = () => `${((performance.now() - begin) / 1000).toFixed(0)} s`;
  try {
    await language.generate();
    // The licence requires that every package contains its text.
    writeGenerated(`${language.home}/LICENSE`, readFileSync(`${ROOT}LICENSE`, 'utf8'));
    const packed = await unless(language.notPacked?.() ?? null, 'packed', () => language.pack());
    const notTested = urls ? (language.notTested?.() ?? null) : 'as asked';
    const tested = await unless(notTested, 'tested', () => language.test(urls!));
    return `${packed}, ${tested} in ${seconds()}`;
  } catch (error) {
    console.error(error);
    return `FAILED after ${seconds()}: ${messageOf(error)}`;
  }
}

/** Runs a step unless there is a `reason` not to. Returns `done`, or that it was not done and why, for the report. */
async function unless(reason: string | null, done: string, work: () => Promise<void>): Promise<string> {
  if (reason !== null) return `NOT ${done} (${reason})`;
  await work();
  return done;
}

import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseAsWritten } from '../../lib/json/written-numbers.ts';
import { parseModelId } from '../../lib/model-id.ts';
import { type EncoderContract, encoderFiles, findEncoderContract } from '../../runtime/contracts/encoder-contracts.ts';
import { createEncoderTokenizer, type EncoderTokenizer } from '../../runtime/encoder/encoder-tokenizer.ts';
import { pathInVariant, pathsOf, selectModelFiles } from '../../runtime/store/model-files.ts';
import { compileEncoder } from '../../runtime/worker/compile-encoder.ts';
import type { CompileOptions } from '../../runtime/worker/compile-model.ts';
import { loadModel } from '../../runtime/worker/load-model.ts';
import type { ServedModel } from '../../runtime/worker/serve.ts';
import { fixture, readFixture } from '../fixture.ts';

/** Families of the fixtures. */
export const FAMILIES = readdirSync(fixture('encoders')).flatMap((name) => name.match(/^([^.]+)\.txtar$/)?.[1] ?? []);

interface Golden {
  // biome-ignore lint/suspicious/noExplicitAny: the reference's cases, which differ by family
  cases: any[];
}

/** Returns the reference's cases of a family, with their numbers as written. */
export function goldenOf(family: string): Golden {
  return parseAsWritten(readFixture(`encoders/${family}/golden.json`));
}

/** Lists the files of a fixture. */
function entriesOf(folder: string): { path: string; size: number }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    if (!entry.isFile()) return [];
    const file = join(entry.parentPath, entry.name);
    return [{ path: file.slice(folder.length + 1), size: statSync(file).size }];
  });
}

/** Returns the contract of a fixture, without some of its files. */
export function contractOf(family: string, without: readonly string[] = []): EncoderContract {
  const folder = fixture(`encoders/${family}`);
  const paths = new Set(entriesOf(folder).flatMap(({ path }) => (without.includes(path) ? [] : [path])));
  const json = Object.entries(encoderFiles(paths)).map(([name, path]) => [name, readJson(join(folder, path))]);
  return findEncoderContract({ paths, json: Object.fromEntries(json) })!;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** Returns the text of a fixture's tokenizer. Those of DeBERTa share one table, which is stored once. */
function tokenizerText(file: string): string {
  const charsmap = readFixture('encoders/charsmap.txt');
  return readFileSync(file, 'utf8').replace('"precompiled_charsmap":""', `"precompiled_charsmap":"${charsmap}"`);
}

export function tokenizerOf(family: string): EncoderTokenizer {
  const folder = fixture(`encoders/${family}${family.startsWith('laya') ? '/tokenizer' : ''}`);
  return createEncoderTokenizer({
    tokenizer: JSON.parse(tokenizerText(join(folder, 'tokenizer.json'))),
    tokenizerConfig: JSON.parse(readFileSync(join(folder, 'tokenizer_config.json'), 'utf8')),
  });
}

/**
 * Compiles and loads a fixture as the server would; `close` removes its files.
 *
 * @param checkpoint true to write its graphs from the checkpoint instead of using those in its folder
 * @param without files to leave out
 */
export async function loadFixture(
  family: string,
  {
    windows = false,
    checkpoint = false,
    without = [],
    ...options
  }: Partial<CompileOptions> & { windows?: boolean; checkpoint?: boolean; without?: readonly string[] } = {},
): Promise<ServedModel & { dir: string; close(): void }> {
  const temporary = mkdtempSync(join(tmpdir(), 'assay-encoder-'));
  const [source, dir] = [join(temporary, 'source'), join(temporary, 'target')];
  const folder = fixture(`encoders/${family}`);
  const contract = contractOf(family, without);
  const entries = entriesOf(folder).filter(({ path }) => !checkpoint || !path.endsWith('.onnx'));
  const selection = selectModelFiles(entries, { device: 'CPU', contract });
  if ('missing' in selection) throw new Error(selection.missing);
  const { files } = selection;
  for (const path of pathsOf(files)) {
    const name = join(source, pathInVariant(files, path));
    mkdirSync(dirname(name), { recursive: true });
    if (path.endsWith('tokenizer.json')) writeFileSync(name, tokenizerText(join(folder, path)));
    else copyFileSync(join(folder, path), name);
  }
  const compile = { source, target: dir, device: 'CPU' as const, precision: 'float' as const, maxPromptLen: 4096 };
  await compileEncoder({ ...compile, ...options }, contract);
  for (const name of Object.keys(files.support)) copyFileSync(join(source, name), join(dir, name));
  const model = await loadModel(
    { model: parseModelId(`fixture/${family}`), dir, threads: 1, windows },
    () => undefined,
  );
  return Object.assign(model, { dir, close: () => rmSync(temporary, { recursive: true, force: true }) });
}

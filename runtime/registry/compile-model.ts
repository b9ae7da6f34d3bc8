import * as fs from 'node:fs/promises';
import { AssayError } from '../../lib/errors.ts';
import { formatBytes } from '../../lib/format-bytes.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { CompileProgress } from '../protocol/messages.ts';
import {
  type CompiledModel,
  checkPlainFiles,
  publishCompiled,
  removeStale,
  shareFiles,
} from '../store/compiled-store.ts';
import { hashFile } from '../store/digest.ts';
import { diskError, SPARE_BYTES } from '../store/disk-error.ts';
import type { Fingerprint, SourceFile } from '../store/fingerprint.ts';
import { type LocalModel, linkFile } from '../store/hub-cache.ts';
import { inheritedFrom } from '../store/model-files.ts';
import { dirname, join } from '../store/paths.ts';
import type { CompileContext, EnsureOptions } from './compile-context.ts';

/**
 * Verifies a model's source files, compiles them for one device in a child process, and publishes the result in the
 * store.
 *
 * @throws AssayError `engine_failed` if a source file is damaged or the compile fails; `disk_full` as soon as it is
 *   known that the result does not fit on the disk; `internal_error` if `ASSAY_HOME` cannot be written to; the reason
 *   of `options.signal` if it aborts
 */
export async function compileIntoStore(
  context: CompileContext,
  model: LocalModel,
  files: readonly SourceFile[],
  { fingerprint, plugin }: { fingerprint: Fingerprint; plugin: PluginTarget | undefined },
  options: EnsureOptions,
): Promise<CompiledModel> {
  const { paths, compiler, log } = context;
  const { base, missesRevision } = model;
  if (base && missesRevision) {
    const fields = { model: model.id, base: base.id, commit: base.commit, wanted: missesRevision };
    log.warn(fields, 'the base model is not at the revision that the adapter names; pull the model to fetch that one');
  }
  await verifySource(model, files, options);
  const staging = paths.staging(model.id);
  const source = join(staging, 'source');
  const target = join(staging, 'target');
  const full = new AbortController();
  const signal = AbortSignal.any([options.signal, full.signal]);
  let spaceCheck: Promise<void> | undefined;
  try {
    // Removes files of an earlier compile that was killed.
    await paths.remove(staging);
    for (const directory of [source, target]) await paths.makeDirectory(directory);
    // The compile sees only the files of the chosen variant, even if the repository has several.
    for (const file of files) {
      const link = paths.file(source, file.place);
      await paths.makeDirectory(dirname(link));
      await linkFile(file.real, link);
    }
    const spec = {
      model: model.id,
      source,
      target,
      device: fingerprint.device,
      precision: context.precision,
      maxPromptLen: fingerprint.maxPromptLen,
      ...(model.contract ? { contract: model.contract } : {}),
      ...(plugin ? { plugin } : {}),
      ...(options.refused ? { refused: [...options.refused] } : {}),
    };
    const onProgress = ({ step, done, total }: CompileProgress): void => {
      // The size of the result is known once its first bytes are written.
      if (step === 'weights')
        spaceCheck ??= checkSpace(context, model, total - done, target).catch((e) => full.abort(e));
      if (step === 'device') {
        const what = done + 1 < total ? `graph ${done + 1} of ${total - 1}` : 'measuring';
        options.onProgress({ stage: 'compiling', step: `${fingerprint.device}: ${what}`, bytes: 0, total: null });
        return;
      }
      // Steps other than `reading` count bytes of weights.
      options.onProgress({
        stage: 'compiling',
        step,
        ...(step === 'reading' ? { bytes: 0, total: null } : { bytes: done, total }),
      });
    };
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'starting' });
    const report = await compiler.compile(spec, { signal, onProgress });
    await spaceCheck;
    signal.throwIfAborted();
    await checkPlainFiles(target);
    const texts = Object.entries(model.files.support).map(([name, path]) => [name, paths.file(model.directory, path)]);
    const config = base?.files.support['config.json'];
    if (base && config && !('config.json' in model.files.support)) {
      texts.push(['config.json', paths.file(base.directory, config)]);
    }
    for (const [name, path] of base ? inheritedFrom(base.files, model.files) : []) {
      texts.push([name, paths.file(base?.directory ?? '', path)]);
    }
    for (const [name = '', file = ''] of texts) await fs.copyFile(file, join(target, name));
    options.onProgress({ stage: 'compiling', bytes: 0, total: null, step: 'saving' });
    const made = await publishCompiled(paths, model.id, target, { fingerprint, ...report });
    await removeStale(paths, model.id, staging, fingerprint, options.inUse);
    await shareFiles(paths, model.id, staging, made);
    return made;
  } catch (error) {
    signal.throwIfAborted();
    // The child process reports a full disk as a failed compile.
    if ((await context.freeBytes(paths.compiledRoot()).catch(() => Number.POSITIVE_INFINITY)) < FULL_BYTES) {
      throw diskError(Object.assign(new Error('no space left', { cause: error }), { code: 'ENOSPC' }), 'ASSAY_HOME');
    }
    throw diskError(error, 'ASSAY_HOME');
  }
}

/** Free bytes of a disk below which it counts as full. */
const FULL_BYTES = 1024 * 1024;

async function checkSpace(context: CompileContext, model: LocalModel, needed: number, target: string): Promise<void> {
  const free = await context.freeBytes(target);
  if (free < needed + SPARE_BYTES) {
    throw new AssayError(
      'disk_full',
      `Compiling ${model.id} needs about ${formatBytes(needed)} more, with ${formatBytes(SPARE_BYTES)} to spare, and the disk of ASSAY_HOME has ${formatBytes(free)} free. Free space (assay list, assay rm) or set ASSAY_HOME to a directory on a larger disk.`,
    );
  }
}

/**
 * Checks the hashes of a model's source files, so that a damaged file is reported instead of causing wrong answers.
 * Throws `engine_failed` if one does not match, the file system's error if a file cannot be read, and the reason of
 * `signal` if it aborts.
 */
async function verifySource(
  model: LocalModel,
  files: readonly SourceFile[],
  { signal, onProgress }: Pick<EnsureOptions, 'signal' | 'onProgress'>,
): Promise<void> {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  let checked = 0;
  for (const file of files) {
    const onBytes = (bytes: number): void =>
      onProgress({ stage: 'verifying', bytes: checked + bytes, total, file: file.path });
    if ((await hashFile(file.real, file.size, file.hash, { signal, onBytes })) !== file.hash) {
      throw new AssayError(
        'engine_failed',
        `${file.path} of ${model.id} is damaged on this machine's disk. Fetch it again: assay pull ${model.id}`,
      );
    }
    checked += file.size;
  }
}

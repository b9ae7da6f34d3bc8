import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { Calibration } from '../../lib/calibration/calibration.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { diskError, systemCode } from './disk-error.ts';
import { dirname, type StorePaths } from './paths.ts';

/** Holds the calibration to use for a model, with its origin. */
export interface ActiveCalibration {
  calibration: Calibration;
  /** Origin: `own` was fitted on this machine (`assay calibrate`), `bundled` ships with the model. */
  from: 'own' | 'bundled';
}

const Text = v.pipe(v.string(), v.parseJson(), Calibration);

/**
 * Reads and writes the calibrations in `ASSAY_HOME`, and reads those that ship with models. A calibration that is
 * fitted while the server runs takes effect with the next request.
 */
export class Calibrations {
  readonly #paths: StorePaths;
  /**
   * Contents of the files read so far, by path; null for a file that cannot be used. `changed` is a file's modification
   * time in milliseconds.
   */
  readonly #read = new Map<string, { changed: number; calibration: Calibration | null }>();

  constructor(paths: StorePaths) {
    this.#paths = paths;
  }

  /**
   * Returns the calibration to use for a model: the one fitted on this machine, otherwise the one that ships with the
   * model; null if there is none. Kinds of answers that were not fitted on this machine keep the temperatures that ship
   * with the model.
   *
   * @param fingerprint hash over the model's source files (`sourceHash`)
   */
  async find(model: ModelId, fingerprint: string): Promise<ActiveCalibration | null> {
    const own = await this.#readFile(this.#paths.calibration(fingerprint), fingerprint);
    const file = this.#paths.bundledCalibration(model);
    const bundled = file === null ? null : await this.#readFile(file, fingerprint);
    if (own) return { calibration: { ...own, kinds: { ...bundled?.kinds, ...own.kinds } }, from: 'own' };
    return bundled ? { calibration: bundled, from: 'bundled' } : null;
  }

  /**
   * Stores a calibration in place of an earlier one for the same source files. Returns the path of its file. Throws an
   * `AssayError` if it cannot be stored: `disk_full`, or `internal_error` with the reason.
   */
  async write(calibration: Calibration): Promise<string> {
    const file = this.#paths.calibration(calibration.fingerprint);
    const text = `${JSON.stringify(v.parse(Calibration, calibration), null, 2)}\n`;
    try {
      await this.#paths.makeDirectory(dirname(file));
      // Renamed into place, because a server may read it at any time, and a full disk must not damage the earlier one.
      await fs.writeFile(`${file}.new`, text);
      await fs.rename(`${file}.new`, file);
    } catch (error) {
      throw diskError(error, 'ASSAY_HOME');
    }
    return file;
  }

  /**
   * Removes the calibration that was fitted on this machine for these source files. Returns false if there was none.
   * Throws `internal_error` if there is one that cannot be removed.
   *
   * @param fingerprint hash over the model's source files (`sourceHash`)
   */
  async remove(fingerprint: string): Promise<boolean> {
    return fs.rm(this.#paths.calibration(fingerprint)).then(
      () => true,
      (error) => {
        if (systemCode(error) === 'ENOENT') return false;
        throw diskError(error, 'ASSAY_HOME');
      },
    );
  }

  /** Reads a calibration file. Returns null if it is missing or damaged, or was fitted for other weights. */
  async #readFile(file: string, fingerprint: string): Promise<Calibration | null> {
    const stat = await fs.stat(file).catch(() => null);
    if (!stat) return null;
    let known = this.#read.get(file);
    if (known?.changed !== stat.mtimeMs) {
      const parsed = v.safeParse(Text, await fs.readFile(file, 'utf8').catch(() => ''));
      known = { changed: stat.mtimeMs, calibration: parsed.success ? parsed.output : null };
      this.#read.set(file, known);
    }
    return known.calibration?.fingerprint === fingerprint ? known.calibration : null;
  }
}

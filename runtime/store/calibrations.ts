import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { Calibration } from '../../lib/calibration/calibration.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { dirname, type StorePaths } from './paths.ts';

/** A calibration that counts for the loaded model, and where it comes from. */
export interface ActiveCalibration {
  calibration: Calibration;
  /** `own`: fitted on this machine (`assay calibrate`). `bundled`: shipped with the model. */
  from: 'own' | 'bundled';
}

const Text = v.pipe(v.string(), v.parseJson(), Calibration);

/**
 * The calibrations of a home, and those that ship with models. One that is fitted while the server runs counts from
 * the next request on.
 */
export class Calibrations {
  readonly #paths: StorePaths;
  /** Files that were read, by path, with the time of their last change. */
  readonly #read = new Map<string, { changed: number; calibration: Calibration | null }>();

  constructor(paths: StorePaths) {
    this.#paths = paths;
  }

  /**
   * Returns the calibration of a model with these files; null where there is none that fits.
   *
   * @param fingerprint sha256 over the model's files (`sourceHash`)
   */
  async find(model: ModelId, fingerprint: string): Promise<ActiveCalibration | null> {
    const own = await this.#readFile(this.#paths.calibration(fingerprint), fingerprint);
    if (own) return { calibration: own, from: 'own' };
    const file = this.#paths.bundledCalibration(model);
    const bundled = file && (await this.#readFile(file, fingerprint));
    return bundled ? { calibration: bundled, from: 'bundled' } : null;
  }

  async write(calibration: Calibration): Promise<string> {
    const file = this.#paths.calibration(calibration.fingerprint);
    await this.#paths.makeDirectory(dirname(file));
    await fs.writeFile(file, `${JSON.stringify(v.parse(Calibration, calibration), null, 2)}\n`);
    return file;
  }

  /** Removes a calibration of the home; false where there was none. */
  async remove(fingerprint: string): Promise<boolean> {
    return fs.rm(this.#paths.calibration(fingerprint)).then(
      () => true,
      () => false,
    );
  }

  /** A file that is damaged, or of other weights, is none. */
  async #readFile(file: string, fingerprint: string): Promise<Calibration | null> {
    const stat = await fs.stat(file).catch(() => null);
    if (!stat) return null;
    const known = this.#read.get(file);
    if (known?.changed === stat.mtimeMs) return known.calibration;
    const parsed = v.safeParse(Text, await fs.readFile(file, 'utf8').catch(() => ''));
    const calibration = parsed.success && parsed.output.fingerprint === fingerprint ? parsed.output : null;
    this.#read.set(file, { changed: stat.mtimeMs, calibration });
    return calibration;
  }
}

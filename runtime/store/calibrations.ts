import * as fs from 'node:fs/promises';
import * as v from 'valibot';
import { Calibration } from '../../lib/calibration/calibration.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { dirname, type StorePaths } from './paths.ts';

/** Describes the calibration in effect for the loaded model, and its origin. */
export interface ActiveCalibration {
  calibration: Calibration;
  /** `own`: fitted on this machine (`assay calibrate`). `bundled`: shipped with the model. */
  from: 'own' | 'bundled';
}

const Text = v.pipe(v.string(), v.parseJson(), Calibration);

/**
 * Reads the calibrations of a home, and those that ship with models. A calibration fitted while the server runs takes
 * effect with the next request.
 */
export class Calibrations {
  readonly #paths: StorePaths;
  /** Files that were read, by path, with the time of their last change. */
  readonly #read = new Map<string, { changed: number; calibration: Calibration | null }>();

  constructor(paths: StorePaths) {
    this.#paths = paths;
  }

  /**
   * Returns the calibration of a model with these files; null when none fits.
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

  /** Removes a calibration of the home. Returns false when there was none. */
  async remove(fingerprint: string): Promise<boolean> {
    return fs.rm(this.#paths.calibration(fingerprint)).then(
      () => true,
      () => false,
    );
  }

  /** Reads a calibration; null for a file that is damaged or belongs to other weights. */
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

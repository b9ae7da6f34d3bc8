import type { Device } from '../../lib/backend.ts';
import type { DeviceDecision } from '../../lib/models/host.ts';

/**
 * Records the decisions about the devices that the current or last load tried, and the devices that are excluded: one
 * failed load excludes a device until the server restarts.
 */
export class DeviceTrials {
  /** Devices of this machine, best first. The CPU is always the last. */
  readonly #devices: readonly Device[];
  readonly #failed: Set<Device>;
  #decisions: readonly DeviceDecision[] = [];

  /** @param failed the excluded devices, which the trials of all models have in common */
  constructor(devices: readonly Device[], failed = new Set<Device>()) {
    this.#devices = devices;
    this.#failed = failed;
  }

  /** Devices that failed to load a model since the server started, and are not tried again. */
  get failed(): ReadonlySet<Device> {
    return this.#failed;
  }

  /** Decisions about the devices that the current or last load tried. */
  get decisions(): readonly DeviceDecision[] {
    return this.#decisions;
  }

  /** Best device that is not excluded, which the next load uses if it can run the model; `CPU` if all are excluded. */
  get next(): Device {
    return this.#devices.find((device) => !this.#failed.has(device)) ?? 'CPU';
  }

  /** Forgets the decisions of the last load, because another load begins. Failed devices stay excluded. */
  begin(): void {
    this.#decisions = [];
  }

  add(decisions: readonly DeviceDecision[]): void {
    this.#decisions = [...this.#decisions, ...decisions];
  }

  /** Excludes a device until the server restarts. `reason` replaces an earlier decision about it. */
  fail(device: Device, reason: string): void {
    this.#failed.add(device);
    const others = this.#decisions.filter((one) => one.device !== device);
    this.#decisions = [...others, { device, used: false, reason, figures: null }];
  }
}
